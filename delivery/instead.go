package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// ReroutedPrefix starts the ids of messages that go out on another route than their own.
const ReroutedPrefix = "rerouted/"

// Substitutes are what goes out instead of a message that failed: it on another route, its text in
// parts, or a notice. They must commit with the failure.
type substitutes struct {
	cfg       Config
	addresses addresses
}

// reroute returns a message, which its platform refuses for good, as it goes out on
// another route of its reader: once, marked with where it belongs. It returns nothing if
// the reader has no other route, or the message is of no use elsewhere. The result must
// commit with the failure.
func (s substitutes) reroute(ctx context.Context, o claybot.Outgoing) []claybot.Outgoing {
	if !reply(o) || s.cfg.Elsewhere == nil || strings.HasPrefix(o.ID, ReroutedPrefix) {
		return nil
	}
	to, ok := s.cfg.Elsewhere(ctx, o)
	if !ok {
		return nil
	}
	about(s.cfg.Log, o).Info("sending on another route of the reader", "to", to.Connector)
	text := s.cfg.Voice(ctx, claybot.Outgoing{Route: to}).Rerouted(o)
	again := claybot.Outgoing{Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: to, Once: o.Once, Resent: o.Copies > 0}
	if o.Question != nil { // its buttons belong to the conversation
		again.Kind = claybot.OutgoingNotice
	}
	if _, takesFiles := s.cfg.Connector(to.Connector).(connectors.FileSender); o.File != nil && takesFiles {
		again.ID, again.Text, again.File = ReroutedPrefix+o.ID+"/1", text, o.File
		again.Part, again.Parts, again.At = 1, 1, claybot.Now()
		return []claybot.Outgoing{again}
	}
	return s.addresses.composeOnce(again, ReroutedPrefix+o.ID, text)
}

// inParts returns a long reply or its code, which the chat refuses as a file, as the messages of its text;
// none for other messages, and for one that may have arrived. The first is the again message
// of the file. They must commit with the failure.
func (s substitutes) inParts(ctx context.Context, o claybot.Outgoing) []claybot.Outgoing {
	if o.File == nil || o.Kind == claybot.OutgoingFile || o.Copies > 0 {
		return nil
	}
	_, r, err := s.cfg.Files.OpenFile(ctx, o.Agent, o.File.ID)
	if err != nil {
		about(s.cfg.Log, o).Warn("failed to read a long reply", "err", err)
		return nil
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		about(s.cfg.Log, o).Warn("failed to read a long reply", "err", err)
		return nil
	}
	out := s.addresses.compose(claybot.Outgoing{Kind: o.Kind, Run: o.Run, Agent: o.Agent, Message: o.Message, Route: o.Route, Once: o.Once}, connectors.ReplyText(*o.File, string(text)))
	for i := range out {
		out[i].ID = AgainPrefix + o.ID
		if i > 0 {
			out[i].ID += fmt.Sprint("/", i+1)
		}
	}
	return out
}

// mayBeMissing returns the words about this message, which may not have arrived. They name
// /resend only where it sends the message again.
func (s substitutes) mayBeMissing(ctx context.Context, o claybot.Outgoing) string {
	again := false
	if s.cfg.Repeats != nil && repeatable(o) {
		var err error
		if again, err = s.cfg.Repeats(ctx, o); err != nil {
			about(s.cfg.Log, o).Warn("failed to find out whether /resend covers a message", "err", err)
		}
	}
	return s.cfg.Voice(ctx, o).MaybeMissing(o, again)
}

// notice returns the notice to the reader about this message, which failed. A notice
// that fails is not followed by another, unless it is a question, whose run waits for
// the answer. There is no notice either where one with the same words is still unsent
// in that chat: it covers this message as well.
func (s substitutes) notice(ctx context.Context, o claybot.Outgoing, text string, whispered bool) []claybot.Outgoing {
	if o.Kind == claybot.OutgoingNotice && o.Question == nil {
		return nil
	}
	route := o.Route
	route.ReplyTo = ""
	waiting, err := s.cfg.Reader.Unsent(ctx, route.Dest(), o.N, laneMemory)
	if err != nil {
		about(s.cfg.Log, o).Warn("failed to read the outbox of a chat", "err", err)
	}
	for _, w := range waiting {
		same := strings.HasPrefix(w.ID, NoticePrefix) && w.Route == route && w.Text == text
		if same && w.State == claybot.SendWaiting && w.Attempts == 0 {
			return nil
		}
	}
	notice := claybot.Outgoing{
		ID: NoticePrefix + o.ID, Kind: claybot.OutgoingNotice, Run: o.Run, Agent: o.Agent,
		Route: route, Text: text, Part: 1, Parts: 1, At: claybot.Now(),
	}
	if whispered { // so is the notice
		notice.Message = o.Message
	}
	return []claybot.Outgoing{notice}
}
