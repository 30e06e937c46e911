package slack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// said reads a span of C1, each message as "user name flags: text".
func (w *world) said(t *testing.T, s connectors.Span) (lines []string, more bool) {
	t.Helper()
	s.Channel = "T1/C1"
	all, more, err := w.Said(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		flags := ""
		for _, f := range []struct {
			on   bool
			flag string
		}{{m.Outsider, "o"}, {m.Bot, "b"}, {m.Passed, "p"}} {
			if f.on {
				flags += f.flag
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", m.UserID, m.Name, flags, m.Text))
	}
	return lines, more
}

// What was said in a thread or a channel is read with who said it, the newest messages of it
// (CN-18, SL-09).
func TestSaid(t *testing.T) {
	inWorld(t, slacktest.Config{HistoryItems: 2}, func(t *testing.T, w *world) {
		w.slack.SetUser(slacktest.User{ID: "U1", Name: "Ann"})
		w.slack.SetUser(slacktest.User{ID: "U2", Name: "Guest", Restricted: true})
		say := func(p slacktest.Post) string {
			p.Channel = "C1"
			return w.slack.Write(p)
		}
		root := say(slacktest.Post{User: "U1", Text: "a &lt;b&gt;"})
		flat := say(slacktest.Post{User: "U1", Text: "flat"})
		second := say(slacktest.Post{Thread: root, User: "U2", Text: "two\nlines"})
		say(slacktest.Post{Thread: root, User: "U9", UserTeam: "T2", Text: "from afar"})
		o := outgoing("C1", root, "an answer")
		if _, err := w.Send(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		last := say(slacktest.Post{Thread: root, User: "U1", Text: "last"})
		thread := []string{"U1 Ann : a <b>", "U2 Guest o: two\nlines", "T2/U9  o: from afar", "UBOT claybot b: an answer", "U1 Ann : last"}
		for name, c := range map[string]struct {
			span connectors.Span
			want []string
			more bool
		}{
			"thread":     {connectors.Span{Thread: root, Limit: 10}, thread, false},
			"newest":     {connectors.Span{Thread: root, Limit: 2}, thread[3:], true},
			"exactly":    {connectors.Span{Thread: root, Limit: 5}, thread, false},
			"before":     {connectors.Span{Thread: root, Before: last, Limit: 10}, thread[:4], false},
			"after":      {connectors.Span{Thread: root, After: second, Limit: 10}, thread[2:], false},
			"channel":    {connectors.Span{Limit: 10}, []string{"U1 Ann : a <b>", "U1 Ann : flat"}, false},
			"newest one": {connectors.Span{Limit: 1}, []string{"U1 Ann : flat"}, true},
			"first":      {connectors.Span{Before: flat, Limit: 10}, []string{"U1 Ann : a <b>"}, false},
		} {
			got, more := w.said(t, c.span)
			if !slices.Equal(got, c.want) || more != c.more {
				t.Errorf("%s: %q, more %v; want %q, more %v", name, got, more, c.want, c.more)
			}
		}
	})
}

// Of a thread that is longer than is read, it is the newest messages.
func TestSaidOfLongThread(t *testing.T) {
	inWorld(t, slacktest.Config{HistoryItems: 10}, func(t *testing.T, w *world) {
		root := w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "root"})
		for i := range 60 {
			time.Sleep(time.Minute)
			w.slack.Write(slacktest.Post{Channel: "C1", Thread: root, User: "U1", Text: fmt.Sprint(i)})
		}
		time.Sleep(24 * time.Hour)
		w.slack.Write(slacktest.Post{Channel: "C1", Thread: root, User: "U1", Text: "today"})
		got, more := w.said(t, connectors.Span{Thread: root, Limit: 3})
		if !more || len(got) == 0 || got[len(got)-1] != "U1 U1 : today" {
			t.Errorf("%q, more %v", got, more)
		}
	})
}

// refuses reports whether an error is a refusal for a reason.
func refuses(err error, reason string) bool {
	r, ok := errors.AsType[*connectors.RefusedError](err)
	return ok && strings.Contains(r.Text, reason)
}

// A pause that Slack asks for, a missing scope and an invalid span are errors at once: nothing is
// waited for.
func TestSaidRefused(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		root := w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "root"})
		began := time.Now()
		w.slack.Fail(methodReplies, slacktest.Fault{RetryAfter: 20 * time.Second})
		for range 2 { // the second makes no call
			if _, _, err := w.Said(t.Context(), connectors.Span{Channel: "T1/C1", Thread: root, Limit: 1}); !errors.As(err, new(*connectors.RetryError)) {
				t.Errorf("a pause: %v", err)
			}
		}
		if n := len(w.slack.Calls(methodReplies)); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		w.slack.Lack("channels:history", true)
		if _, _, err := w.Said(t.Context(), connectors.Span{Channel: "T1/C1", Limit: 1}); !refuses(err, "channels:history") {
			t.Errorf("a missing scope: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %s", took)
		}
		time.Sleep(20 * time.Second)
		w.slack.Lack("channels:history", false)
		for want, s := range map[string]connectors.Span{
			"not a Slack channel":         {Channel: "C1", Limit: 1},
			`"yesterday" is not the id`:   {Channel: "T1/C1", Before: "yesterday", Limit: 1},
			`"1." is not the id`:          {Channel: "T1/C1", Before: "1.", Limit: 1},
			"Slack does not show":         {Channel: "T1/C9", Limit: 1},
			"Slack does not show the mes": {Channel: "T1/C1", Thread: "1.000000", Limit: 1},
		} {
			if _, _, err := w.Said(t.Context(), s); !refuses(err, want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	})
}
