package agentsystem

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/worker"
)

var (
	_ tools.Media   = (*Output)(nil)
	_ tools.Display = (*Output)(nil)
)

const (
	// maxCaption is what every platform takes as a caption, in UTF-16 units, with
	// room for a mark of a repeated send. A longer one is a message of its own.
	maxCaption = 960
	// maxPicture is what every platform shows as a picture, in bytes; larger ones
	// are documents.
	maxPicture = 10_000_000
)

// An Output sends what tools have to show into the chat where their run answers.
type Output struct {
	files     storage.Files
	sender    *delivery.Deliverer
	outbox    storage.Outbox
	people    *people.Directory
	profiles  *profiles.Profiles
	index     Index
	readers   func(context.Context, tools.Env) claybot.Audience
	work      *runs.AtWork
	connector func(name string) connectors.Connector
	active    func(name string) connectors.Connector
	log       *slog.Logger
}

// SendFile implements tools.Media. The file and the message have ids made of the
// call, so a call that is made again sends nothing new.
func (o *Output) SendFile(ctx context.Context, env tools.Env, x tools.Sending) (tools.Sent, error) {
	route, err := o.fileRoute(ctx, env)
	if err != nil {
		return tools.Sent{}, err
	}
	if route.Connector != "" {
		if _, ok := o.connector(route.Connector).(connectors.FileSender); !ok {
			return tools.Sent{}, fmt.Errorf("no files can be sent to %s; say in words what is in it", route.Connector)
		}
	}
	f, err := o.keepToSend(ctx, env, x)
	if err != nil {
		return tools.Sent{}, err
	}
	if route.Connector == "" {
		return tools.Sent{File: f}, nil
	}
	f.Kind = shownAs(x.As, f)
	base := claybot.Outgoing{
		ID: fmt.Sprintf("file/%s/%s", env.Run, env.CallID), Kind: claybot.OutgoingFile, Run: env.Run, Agent: env.Agent.ID,
		Message: o.work.Of(env.Run).Newest().ID, Route: route, Part: 1, Parts: 1, At: claybot.Now(),
		Once: env.Agent.Descriptor.Scheduled(),
	}
	file := base
	file.File = &f
	caption := strings.TrimSpace(claybot.Clean(x.Caption))
	out := []claybot.Outgoing{file}
	if len(utf16.Encode([]rune(caption))) <= maxCaption {
		out[0].Text = caption
	} else {
		out = append(out, o.sender.ComposeOnce(base, base.ID+"/text", caption)...)
	}
	if _, err := o.sender.Send(ctx, out...); err != nil {
		return tools.Sent{}, fmt.Errorf("send the file: %w", err)
	}
	return tools.Sent{File: f, Place: route.Connector}, nil
}

// fileRoute returns where the files of a run go: where it answers, else to the most
// recent chat of its owner; nowhere for a run over the API.
func (o *Output) fileRoute(ctx context.Context, env tools.Env) (claybot.Route, error) {
	route := o.work.Of(env.Run).Route()
	if route.Connector != "" || env.Agent.Descriptor.Connector == claybot.ConnectorAPI {
		return route, nil
	}
	e, err := o.people.Recent(ctx, env.Agent.Descriptor, env.Agent.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return route, errors.New("this run answers nowhere, so the file would not be delivered; say where it is instead")
	}
	if err != nil {
		return route, err
	}
	c, err := o.people.LastContext(ctx, e.ID)
	if err != nil {
		return route, err
	}
	return claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor), nil
}

// keepToSend stores the file that a tool sends, once for each call.
func (o *Output) keepToSend(ctx context.Context, env tools.Env, x tools.Sending) (claybot.FileReference, error) {
	if x.ID != "" {
		f, r, err := o.files.OpenFile(ctx, env.Agent.ID, x.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return f, fmt.Errorf("you have no file with the id %.64q", x.ID)
		}
		if err != nil {
			return f, err
		}
		return f, errors.Join(r.Close(), mayBeSent(f))
	}
	f := claybot.FileReference{ID: connectors.FileID("sent", string(env.Run), env.CallID), Name: x.Name}
	kept, r, err := o.files.OpenFile(ctx, env.Agent.ID, f.ID)
	if err == nil { // the call is made again
		return kept, r.Close()
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return f, err
	}
	from, err := x.Open(ctx)
	if err != nil {
		return f, err
	}
	defer from.Close() // it was only read
	content := bufio.NewReader(from)
	head, err := content.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return f, fmt.Errorf("read the file: %w", err)
	}
	if len(head) == 0 {
		return f, mayBeSent(f)
	}
	f.MIMEType = worker.TypeOf(x.MIMEType, head)
	f, err = o.files.SaveFile(ctx, env.Agent.ID, f, content, inbox.MaxFile)
	if errors.Is(err, storage.ErrTooMany) {
		return f, fmt.Errorf("the file is too large: at most %d MiB can be sent", inbox.MaxFile>>20)
	}
	if err != nil {
		return f, fmt.Errorf("keep the file: %w", err)
	}
	return f, nil
}

func mayBeSent(f claybot.FileReference) error {
	if f.Size == 0 {
		return errors.New("the file is empty; no chat takes empty files")
	}
	return nil
}

// shownAs returns how a file is shown: as requested, where that is possible.
func shownAs(as claybot.FileKind, f claybot.FileReference) claybot.FileKind {
	picture := f.Size <= maxPicture && (f.MIMEType == "image/jpeg" || f.MIMEType == "image/png" || f.MIMEType == "image/webp")
	switch {
	case (as == "" || as == claybot.FilePhoto) && picture:
		return claybot.FilePhoto
	case as == "" || as == claybot.FilePhoto:
		return claybot.FileDocument
	}
	return as
}

// reactPause is how long a platform may ask a reaction to wait.
const reactPause = 10 * time.Second

// React implements tools.Media.
func (o *Output) React(ctx context.Context, env tools.Env, emoji string) error {
	t := o.work.Of(env.Run)
	m := t.Newest()
	if m.Type != claybot.MessageUser || m.Context.MessageID == "" {
		return errors.New("there is no message of a person here to react to")
	}
	route := m.ReplyRoute(env.Agent.Descriptor)
	c, ok := o.connector(route.Connector).(connectors.Reactor)
	if !ok {
		return errors.New("this chat has no reactions; say it in words")
	}
	if _, stopped := o.active(route.Connector).(connectors.StandIn); stopped {
		return errors.New("an operator has stopped " + route.Connector + "; what you say is sent once it is started")
	}
	if !o.people.MayReceive(claybot.Outgoing{Route: route}) {
		return errors.New("nothing may be sent there any more")
	}
	for {
		err := c.React(ctx, route, m.Context.MessageID, emoji)
		var refused *connectors.RefusedError
		var retry *connectors.RetryError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused):
			return errors.New(refused.Text)
		case errors.As(err, &retry) && retry.After <= reactPause && ctx.Err() == nil:
			claybot.Sleep(ctx, max(retry.After, delivery.MinSilence))
			continue
		case errors.As(err, &retry):
			return &tools.Fault{Code: tools.FaultRate, Text: "the chat asks for a pause; the reaction was not set", Retriable: true, After: retry.After}
		}
		o.log.Warn("reaction failed", "agent", env.Agent.ID, "run", env.Run, "connector", route.Connector, "err", err)
		return &tools.Fault{Code: tools.FaultFailed, Text: "the reaction could not be set now", Retriable: true}
	}
}

// Show implements tools.Display. The first text of a name is a message of its
// own; later ones of the same run replace it.
func (o *Output) Show(ctx context.Context, env tools.Env, name, text string) error {
	t := o.work.Of(env.Run)
	first := fmt.Sprintf("shown/%s/%s", env.Run, name)
	out := o.sender.Compose(claybot.Outgoing{
		Kind: claybot.OutgoingNotice, Run: env.Run, Agent: env.Agent.ID, Message: t.Newest().ID, Route: t.Route(), Shown: name,
	}, text)
	if len(out) == 0 {
		return nil
	}
	one := out[0] // one message only; what does not fit there is cut
	one.Part, one.Parts, one.ID = 1, 1, first
	sent, err := o.sender.Send(ctx, one)
	if err == nil && sent == 0 {
		one.ID, one.EditOf = first+"/"+env.CallID, first
		_, err = o.sender.Send(ctx, one)
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", name, err)
	}
	return nil
}

// Replied returns where a run sent a text by Reply; nil if it did not, if that failed, or if retention has removed it.
func (o *Output) Replied(ctx context.Context, run claybot.RunID, key string) (*claybot.Route, error) {
	out, err := o.outbox.OutgoingByID(ctx, replyKey(run, key)+"/1")
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for a reply: %w", err)
	case out.State == claybot.SendFailed:
		return nil, nil
	}
	return &out.Route, nil
}

// replyKey names a text of a run.
func replyKey(run claybot.RunID, key string) string { return fmt.Sprintf("flow/%s/%s", run, key) }

// Reply sends a text of a run to a chat that an operator chose, once for each key in the run.
// A chat that nothing may be sent to is an error in words.
func (o *Output) Reply(ctx context.Context, agent claybot.Agent, run claybot.RunID, to claybot.Route, key, text string) error {
	out := claybot.Outgoing{Kind: claybot.OutgoingAnswer, Run: run, Agent: agent.ID, Message: o.work.Of(run).Newest().ID, Route: to}
	if o.connector(to.Connector) == nil {
		return fmt.Errorf("there is no connector %.64q", to.Connector)
	}
	if err := o.sender.SendOnce(ctx, out, replyKey(run, key), text); err != nil {
		return fmt.Errorf("send a reply: %w", err)
	}
	return nil
}
