package send

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/local"
)

// A place takes what is sent. The real one is tested in agentsystem.
type place struct {
	sent  []tools.Sending
	bytes []string
	put   []string
	err   error
}

func (p *place) SendFile(ctx context.Context, env tools.Env, x tools.Sending) (tools.Sent, error) {
	if p.err != nil {
		return tools.Sent{}, p.err
	}
	data := ""
	if x.Open != nil {
		r, err := x.Open(ctx)
		if err != nil {
			return tools.Sent{}, err
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return tools.Sent{}, err
		}
		data = string(b)
	}
	p.sent, p.bytes = append(p.sent, x), append(p.bytes, data)
	f := claybot.FileReference{ID: "kept", Name: x.Name, Size: int64(len(data)), Kind: claybot.FileDocument}
	if env.Agent.Descriptor.Connector == claybot.ConnectorAPI {
		return tools.Sent{File: f}, nil
	}
	return tools.Sent{File: f, Place: "chat"}, nil
}

func (p *place) React(_ context.Context, _ tools.Env, emoji string) error {
	p.put = append(p.put, emoji)
	return p.err
}

func (p *place) SendMessage(_ context.Context, _ tools.Env, to, text string) (string, error) {
	p.put = append(p.put, to+"|"+text)
	return "chat:1", p.err
}

func (p *place) OwnChat(_ tools.Env, to string) bool { return to == "" }

func (p *place) Tells(context.Context, tools.Env, string) *tools.Disclosure { return nil }

// TestSendMessage: what a model wrote reaches the chat cleaned, and rules are about the chat.
func TestSendMessage(t *testing.T) {
	p := &place{}
	s, err := tools.NewSet(Tools(p, nil)...)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"text":"hi"}`: "|hi", `{"to":" slack:T1/C1 ","text":"hi"}`: "slack:T1/C1|hi",
		`{"text":" "}`: "", `{"text":"` + strings.Repeat("x", maxMessage+1) + `"}`: "", `{"to":"` + strings.Repeat("x", maxRoute+1) + `","text":"hi"}`: "",
	} {
		p.put = nil
		rec := call(t, s, tools.Env{}, "send_message", json.RawMessage(args))
		if got := strings.Join(p.put, " "); got != want || rec.OK != (want != "") {
			t.Errorf("%.60s: sent %q, the model reads %q", args, got, rec.Text)
		}
	}
	spec, _ := s.Spec("send_message")
	args := json.RawMessage(`{"to":" slack:T1/C1 ","text":"hi"}`)
	if got := spec.Subject(args); got != "slack:T1/C1" || spec.Listed(tools.Env{}, args) {
		t.Errorf("the subject is %q", got)
	}
}

// opened is an Opener of a workspace with the file out/a.txt.
func opened(t *testing.T) Opener {
	t.Helper()
	w, err := local.New(local.Config{Dir: filepath.Join(t.TempDir(), "w")}).Open(t.Context(), "agent/test", workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(t.Context(), "out/a.txt", []byte("alpha")); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(t.Context(), "large", make([]byte, maxFile+1)); err != nil {
		t.Fatal(err)
	}
	return func(context.Context, tools.Env) (workspace.Workspace, error) { return w, nil }
}

func set(t *testing.T, p *place, open Opener) *tools.Set {
	t.Helper()
	s, err := tools.NewSet(Tools(p, open)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(t *testing.T, s *tools.Set, env tools.Env, name string, args any) claybot.Record {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	rec, wait := s.Call(t.Context(), env, claybot.ToolCall{ID: "c1", Name: name, Args: string(raw)})
	if wait != nil {
		t.Fatal("it waits")
	}
	return rec
}

func TestSendFile(t *testing.T) {
	open := opened(t)
	type args map[string]any
	for _, tt := range []struct {
		name string
		args args
		open Opener
		ok   bool
		want string // in the result
	}{
		{"a file", args{"path": "out/a.txt", "caption": "here"}, open, true, "a.txt (5 bytes) is on its way as a document; its id is kept"},
		{"a path with a dot", args{"path": "./out/a.txt"}, open, true, "a.txt"},
		{"a path that goes up", args{"path": "out/../out/a.txt"}, open, false, "error: "},
		{"kept", args{"fileId": string(claybot.NewID()), "as": "voice"}, nil, true, "on its way"},
		{"no workspace", args{"path": "out/a.txt"}, nil, false, "you have no workspace"},
		{"too large", args{"path": "large"}, open, false, "large is too large: at most 50 MiB can be sent"},
		{"a folder", args{"path": "out"}, open, false, "error: "},
		{"outside", args{"path": "/etc/passwd"}, open, false, "error: "},
		{"not there", args{"path": "b.txt"}, open, false, "error: "},
		{"NUL", args{"path": "a\x00b"}, open, false, "no such path"},
		{"long path", args{"path": strings.Repeat("a/", 600)}, open, false, "the limit is 1024"},
		{"long caption", args{"path": "out/a.txt", "caption": strings.Repeat("é", 4001)}, open, false, "more than 4000 characters"},
		{"video", args{"path": "out/a.txt", "as": "video"}, open, false, "want document, photo or voice"},
		{"wrong type", args{"path": 7}, open, false, "path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &place{}
			rec := call(t, set(t, p, tt.open), tools.Env{Run: "r"}, "send_file", tt.args)
			if rec.OK != tt.ok || !strings.Contains(rec.Text, tt.want) || tt.ok != (len(p.sent) == 1) {
				t.Errorf("got %v %q, %d sent", rec.OK, rec.Text, len(p.sent))
			}
			if len(p.sent) == 1 && tt.open != nil && p.bytes[0] != "alpha" {
				t.Errorf("sent %q", p.bytes)
			}
		})
	}
}

// Over the API a file is kept, and belongs to the result.
func TestSendFileOverTheAPI(t *testing.T) {
	p := &place{}
	r, err := Tools(p, opened(t))[0].Call(t.Context(), tools.Env{Agent: claybot.Agent{Descriptor: claybot.User(claybot.ConnectorAPI, "c", "u")}}, json.RawMessage(`{"path":"out/a.txt"}`))
	if err != nil || len(r.Files) != 1 || !strings.Contains(r.Text, "is kept with the id kept") {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestSetReaction(t *testing.T) {
	p := &place{}
	s := set(t, p, nil)
	for emoji, ok := range map[string]bool{"👍": true, " 🎉 ": true, "": false, " \u202e ": false, strings.Repeat("👍", 40): false} {
		if rec := call(t, s, tools.Env{}, "set_reaction", map[string]string{"emoji": emoji}); rec.OK != ok {
			t.Errorf("%q: %v %q", emoji, rec.OK, rec.Text)
		}
	}
	if len(p.put) != 2 {
		t.Errorf("set %q", p.put)
	}
	p.err = errors.New("this chat has no reactions")
	if rec := call(t, s, tools.Env{}, "set_reaction", map[string]string{"emoji": "👍"}); rec.OK || rec.Text != "error: this chat has no reactions" {
		t.Errorf("got %q", rec.Text)
	}
}

// Calls of both go nowhere but to the run's own place, so no person needs to be
// asked, and they may be made again.
func TestSpecs(t *testing.T) {
	for _, tool := range Tools(&place{}, nil) {
		s := tool.Spec()
		if s.Class != tools.Outward || s.Effect != tools.Idempotent || s.Listed == nil || !s.Listed(tools.Env{}, json.RawMessage(`{}`)) || s.Confirm {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
}
