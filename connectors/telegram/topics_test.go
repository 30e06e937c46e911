package telegram

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A topic that is closed or deleted before its answer comes does not lose the answer: it goes to
// the General topic of the group, unless that is closed as well.
func TestTopicEnds(t *testing.T) {
	const forum = -1000000000009
	for name, end := range map[string]func(s *telegramtest.Server, topic int64){
		"closed":    func(s *telegramtest.Server, topic int64) { s.CloseTopic(forum, topic) },
		"deleted":   func(s *telegramtest.Server, topic int64) { s.DeleteTopic(forum, topic, false) },
		"forgotten": func(s *telegramtest.Server, topic int64) { s.DeleteTopic(forum, topic, true) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, b *bubble) {
				topic := b.server.AddTopic(forum)
				_, message := b.server.Write(telegramtest.Incoming{ChatID: forum, UserID: 7, Text: "@claybot hi", ThreadID: topic})
				o := outgoing(strconv.FormatInt(forum, 10), "an **answer**")
				o.Route.ThreadID, o.Route.ReplyTo = strconv.FormatInt(topic, 10), strconv.FormatInt(message, 10)
				first, err := b.conn.Send(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				end(b.server, topic)
				if _, err := b.conn.Send(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				f := o
				f.Kind, f.Text, f.File = claybot.OutgoingFile, "a file", &claybot.FileReference{Name: "a.txt", Kind: claybot.FileDocument, Size: 1}
				if _, err := b.conn.SendFile(t.Context(), f, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }); err != nil {
					t.Fatal(err)
				}
				got := b.server.Sent(forum)
				if len(got) != 3 {
					t.Fatalf("got %+v", got)
				}
				for i, want := range []string{"an answer", "a file"} {
					if m := got[i+1]; m.ThreadID != 0 || m.ReplyTo != 0 || m.Text != want {
						t.Errorf("got %+v, want %q outside of the topic", m, want)
					}
				}
				b.server.CloseTopic(forum, 1)
				calls := b.server.Calls("sendMessage")
				var stop *connectors.PermanentError
				if _, err := b.conn.Send(t.Context(), o); !errors.As(err, &stop) || stop.DeadRoute || b.server.Calls("sendMessage") != calls+2 {
					t.Errorf("all closed: %v; a group may have other topics", err)
				}
				b.server.Fail(telegramtest.Fault{Method: "editMessageText", Status: 400, Description: "Bad Request: TOPIC_CLOSED"})
				o.Edit = first
				if _, err := b.conn.Send(t.Context(), o); !errors.Is(err, connectors.ErrEditGone) {
					t.Errorf("an edit in the topic: %v, want a new message", err)
				}
			})
		})
	}
}
