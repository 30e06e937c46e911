// Package send holds the tools with which an agent puts more than words into the
// chat where it answers, send_file and set_reaction, and send_message, with which it
// writes into other chats that it may use.
//
// It checks what a model wrote and reads files from the workspace. Where things
// go, and that they go once, is the business of tools.Media, which knows each
// call by its Env; so a call that a crash cut off is made again.
//
// Only cmd imports it.
package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
)

const (
	maxFile    = 50 << 20 // bytes
	maxPath    = 1024     // bytes
	maxCaption = 4000     // characters
	maxEmoji   = 64       // bytes
)

// An Opener gives the workspace of a call.
type Opener func(ctx context.Context, env tools.Env) (workspace.Workspace, error)

// A Chat is where the tools of this package send.
type Chat interface {
	tools.Media
	tools.Messages
}

// Tools are all tools of this package, over c. open is nil where agents have no
// workspace; then only kept files can be sent.
func Tools(c Chat, open Opener) []tools.Tool {
	return []tools.Tool{sendFile(c, open), setReaction(c), sendMessage(c)}
}

func sendFile(m tools.Media, open Opener) tools.Tool {
	type input struct {
		Path    string `json:"path,omitempty" jsonschema:"a file in your workspace; give this or fileId"`
		FileID  string `json:"fileId,omitempty" jsonschema:"the id of a file that you have already; give this or path"`
		Caption string `json:"caption,omitempty" jsonschema:"a few words that stand with the file"`
		As      string `json:"as,omitempty" jsonschema:"how it is shown: document, photo (JPEG, PNG or WebP of at most 10 MB) or voice (Ogg Opus, MP3 or M4A); by default a picture is a photo and the rest a document"`
	}
	s := tools.Spec{
		Tool: llm.Tool{Name: "send_file", Description: "Sends a file to the chat where you answer, of at most 50 MiB. " +
			"It is on its way when this returns; do not send it again."},
		Effect: tools.Idempotent, Public: true, Timeout: 5 * time.Minute, Class: tools.Outward, Scopes: []string{"chat"},
		Subject: func(args json.RawMessage) string {
			var in input
			_ = json.Unmarshal(args, &in) // what does not fit is refused before
			return in.Path + in.FileID
		},
		Listed: func(tools.Env, json.RawMessage) bool { return true }, // nothing but its own place
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		x, err := sending(in.Path, in.FileID, in.Caption, in.As)
		if err != nil {
			return tools.Result{}, err
		}
		if x.ID == "" {
			if open == nil {
				return tools.Result{}, errors.New("you have no workspace; only files with a fileId can be sent")
			}
			x.Open = func(ctx context.Context) (io.ReadCloser, error) { return read(ctx, env, open, in.Path) }
		}
		sent, err := m.SendFile(ctx, env, x)
		if err != nil {
			return tools.Result{}, err
		}
		return said(sent), nil
	})
}

func sending(file, id, caption, as string) (tools.Sending, error) {
	var x tools.Sending
	switch {
	case (file == "") == (id == ""):
		return x, errors.New("give either path or fileId")
	case len(file) > maxPath:
		return x, fmt.Errorf("field path: %d bytes, the limit is %d", len(file), maxPath)
	case strings.ContainsRune(file, 0) || !utf8.ValidString(file):
		return x, errors.New("field path: no such path is possible")
	case id != "" && claybot.AgentID(id).Validate() != nil:
		return x, fmt.Errorf("field fileId: invalid file id %.64q", id)
	case utf8.RuneCountInString(caption) > maxCaption:
		return x, fmt.Errorf("field caption: more than %d characters; say the rest in your answer", maxCaption)
	}
	x.ID, x.Caption = id, caption
	if file != "" {
		x.Name = path.Base(path.Clean(file))
	}
	switch kind := claybot.FileKind(as); kind {
	case "", claybot.FileDocument, claybot.FilePhoto, claybot.FileVoice:
		x.As = kind
	default:
		return x, fmt.Errorf("field as: %.40q; want document, photo or voice", as)
	}
	return x, nil
}

func read(ctx context.Context, env tools.Env, open Opener, file string) (io.ReadCloser, error) {
	w, err := open(ctx, env)
	if err != nil {
		return nil, err
	}
	content, err := w.ReadFile(ctx, file, maxFile)
	var e *workspace.Error
	if errors.As(err, &e) && e.Code == workspace.TooBig {
		return nil, fmt.Errorf("%s is too large: at most %d MiB can be sent", connectors.OneLine(file, 200), maxFile>>20)
	}
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func said(s tools.Sent) tools.Result {
	what := fmt.Sprintf("%s (%s)", s.File.Name, connectors.FileSize(s.File.Size))
	if s.Place == "" {
		return tools.Result{
			Text:  fmt.Sprintf("%s is kept with the id %s; who asked can fetch it from there", what, s.File.ID),
			Files: []claybot.FileReference{s.File}, What: fmt.Sprintf(texts.DidKeepFile, s.File.Name),
		}
	}
	return tools.Result{
		Text: fmt.Sprintf("%s is on its way as a %s; its id is %s", what, s.File.Kind, s.File.ID),
		What: fmt.Sprintf(texts.DidSendFile, s.File.Name),
	}
}

func setReaction(m tools.Media) tools.Tool {
	type input struct {
		Emoji string `json:"emoji" jsonschema:"one emoji, such as 👍"`
	}
	s := tools.Spec{
		Tool: llm.Tool{Name: "set_reaction", Description: "Puts an emoji on the message that you answer. " +
			"Chats know some emoji only; an answer in words is still needed when something was asked."},
		Effect: tools.Idempotent, Public: true, Class: tools.Outward, Scopes: []string{"chat"},
		Listed: func(tools.Env, json.RawMessage) bool { return true },
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		emoji := strings.TrimSpace(in.Emoji)
		if emoji == "" || len(emoji) > maxEmoji || connectors.OneLine(emoji, maxEmoji) == "" {
			return tools.Result{}, errors.New("field emoji: want one emoji")
		}
		if err := m.React(ctx, env, emoji); err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: "set"}, nil
	})
}
