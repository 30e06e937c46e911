package agentsystem_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/tools"
	chattools "github.com/claybot/claybot/tools/chat"
)

// reading lets an agent answer a message with calls of read_chat, and returns their results.
func (r *rig) reading(to claybot.Descriptor, m claybot.AgentMessage, args ...string) (results []claybot.Record) {
	r.Helper()
	r.more = func(s *agentsystem.AgentSystem) []tools.Tool { return chattools.Tools(s.Chats) }
	var replies []llmtest.Reply
	for _, a := range args {
		replies = append(replies, calling("read_chat", a))
	}
	r.mind.plan(m.Text, append(replies, llmtest.Say("done"))...)
	r.start()
	r.post(to, m)
	after(time.Minute)
	for _, rec := range r.records(to) {
		if rec.Type == claybot.RecordTool {
			results = append(results, rec)
		}
	}
	if len(results) != len(args) {
		r.Fatalf("%d results, want %d: %+v", len(results), len(args), results)
	}
	return results
}

// read_chat reads further back in the thread of the message that the run answers, or in its
// channel, and what it reads is untrusted and confidential (CN-18).
func TestReadChat(t *testing.T) {
	withArchive(t, func(r *rig, a *archive) {
		none := 0
		r.profile.Context = &none
		for _, id := range []string{"01", "02", "03", "05"} {
			a.says(id, "eve")
		}
		got := r.reading(room, in("00", "04", "go"), `{"limit":2}`, `{"limit":2,"before":"02"}`, `{"channel":true}`, `{"before":"00"}`)
		for i, want := range [][]string{
			{"before=02", "said 02", "said 03"}, {"said 01"}, {"said 01", "said 02", "said 03"}, nil,
		} {
			var said []string
			for line := range strings.Lines(got[i].Text) {
				for _, part := range []string{"before=02", "said 01", "said 02", "said 03", "said 05"} {
					if strings.Contains(line, part) {
						said = append(said, part)
					}
				}
			}
			if !slices.Equal(said, want) {
				t.Errorf("call %d read %q, want %q", i, said, want)
			}
			if marked := len(want) > 0; got[i].Tainted != marked || !got[i].Private || !got[i].OK {
				t.Errorf("call %d: tainted %v, private %v, OK %v", i, got[i].Tainted, got[i].Private, got[i].OK)
			}
		}
		spans := []connectors.Span{{Thread: "00", Before: "04", Limit: 2}, {Thread: "00", Before: "02", Limit: 2}, {Before: "04", Limit: 20}, {Thread: "00", Before: "00", Limit: 20}}
		for i := range spans {
			spans[i].Channel = room.ChannelID
		}
		if !slices.Equal(a.spans, spans) {
			t.Errorf("read %+v, want %+v", a.spans, spans)
		}
	})
}

// A message with which a thread begins belongs to the channel.
func TestReadChatOfFirstMessage(t *testing.T) {
	withArchive(t, func(r *rig, a *archive) {
		r.reading(room, in("04", "04", "go"), `{}`)
		if want := []connectors.Span{{Channel: room.ChannelID, Before: "04", Limit: 20}}; !slices.Equal(a.spans, want) {
			t.Errorf("read %+v, want %+v", a.spans, want)
		}
	})
}

// A chat is read only for its person, who wrote in it; each reason against it is told.
func TestReadChatRefused(t *testing.T) {
	event := in("00", "04", "go")
	event.Type = claybot.MessageSystem
	for name, c := range map[string]struct {
		to   claybot.Descriptor
		m    claybot.AgentMessage
		err  error
		want string
		read bool
	}{
		"a direct chat": {ann, msg("go", "go"), nil, "answers a message which its person wrote in a group", false},
		"an event":      {room, event, nil, "answers a message which its person wrote in a group", false},
		"a pause":       {room, in("00", "04", "go"), &connectors.RetryError{After: 20 * time.Second, Err: errors.New("429")}, "asks to wait 20s", true},
		"a refusal":     {room, in("00", "04", "go"), &connectors.RefusedError{Text: "the scope x is missing", Err: errors.New("secret cause")}, "error: the scope x is missing", true},
		"a fault":       {room, in("00", "04", "go"), errNet, "cannot be read now; try again", true},
	} {
		t.Run(name, func(t *testing.T) {
			withArchive(t, func(r *rig, a *archive) {
				none := 0
				r.profile.Context = &none
				a.says("01", "eve")
				a.err = c.err
				got := r.reading(c.to, c.m, `{}`)[0]
				if got.OK || !strings.Contains(got.Text, c.want) || strings.Contains(got.Text, "secret cause") {
					t.Errorf("the model reads %q, want %q", got.Text, c.want)
				}
				if read := len(a.spans) > 0; read != c.read {
					t.Errorf("read %+v", a.spans)
				}
			})
		})
	}
}

// Most platforms show no earlier messages to bots.
func TestReadChatWithoutHistory(t *testing.T) {
	bubble(t, func(r *rig) {
		got := r.reading(room, in("00", "04", "go"), `{}`)[0]
		if got.OK || !strings.Contains(got.Text, "does not show earlier messages to bots") {
			t.Errorf("the model reads %q", got.Text)
		}
	})
}

// A page ends where it is full, and says how the next one begins.
func TestReadChatLongMessages(t *testing.T) {
	withArchive(t, func(r *rig, a *archive) {
		for i := range 20 {
			a.says(fmt.Sprint(10+i), "eve")
			a.said[i].Text = strings.Repeat("word ", 300)
		}
		got := r.reading(room, in("00", "50", "go"), `{}`)[0].Text
		if !strings.Contains(got, "before=20)") || strings.Contains(got, `"id":"19"`) || !strings.Contains(got, `"id":"20"`) || !strings.Contains(got, `"id":"29"`) {
			t.Errorf("%.300s", got)
		}
	})
}
