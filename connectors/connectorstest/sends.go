package connectorstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// The kinds of errors of a send.
const (
	sent      = "sent"
	retry     = "retry"
	permanent = "permanent"
	dead      = "dead route"
	ambiguous = "ambiguous"
	gone      = "edit gone"
	plain     = "not sent"
)

// kindOf names the kind of an error.
func kindOf(err error) string {
	var r *connectors.RetryError
	var p *connectors.PermanentError
	var a *connectors.AmbiguousError
	switch {
	case err == nil:
		return sent
	case errors.As(err, &r):
		return retry
	case errors.As(err, &p) && p.DeadRoute:
		return dead
	case errors.As(err, &p):
		return permanent
	case errors.As(err, &a):
		return ambiguous
	case errors.Is(err, connectors.ErrEditGone):
		return gone
	}
	return plain
}

// try sends o and checks the outcome.
func (w *world) try(s connectors.Sender, o claybot.Outgoing, want string) {
	w.Helper()
	_, err := s.Send(w.Context(), o)
	if got := kindOf(err); got != want {
		w.Errorf("%q: %s (%v), want %s", o.Text, got, err, want)
	}
	if err != nil {
		w.noSecret("the error", err.Error())
	}
}

// sends are the checks of sending texts.
var sends = []check{
	{"Sending", "texts in order, each once", func(w *world) {
		w.greeted(Ann, Bob)
		receipts := make(map[string]bool)
		for _, text := range []string{"one", "two", "three"} {
			receipts[w.send(w.out(Ann, text))] = true
		}
		receipts[w.send(w.out(Bob, "other"))] = true
		if len(receipts) != 4 {
			w.Errorf("receipts %v", receipts)
		}
		w.wantShown(Ann, "one", "two", "three")
		w.wantShown(Bob, "other")
	}},
	{"Sending", "answers in a group", func(w *world) {
		w.greeted(Team)
		w.send(w.out(Team, "to all"))
		w.wantShown(Team, "to all")
	}},
	{"Sending", "edits replace, and repeat harmlessly", func(w *world) {
		w.greeted(Ann)
		receipt := w.send(w.out(Ann, "one"))
		o := w.out(Ann, "two")
		o.Edit = receipt
		for range 2 {
			if again := w.send(o); again != receipt {
				w.Errorf("the edit of %q has the receipt %q", receipt, again)
			}
		}
		w.wantShown(Ann, "two")
	}},
	{"Sending", "edit of a deleted message", func(w *world) {
		w.need(w.p.Delete != nil)
		s := w.greeted(Ann)
		o := w.out(Ann, "two")
		o.Edit = w.send(w.out(Ann, "one"))
		w.p.Delete(Ann, o.Edit)
		w.try(s, o, gone)
		w.wantShown(Ann)
	}},
	{"Sending", "429 silences what it names, and nothing else", func(w *world) {
		w.need(w.p.Limit != nil)
		s := w.greeted(Ann, Bob)
		w.p.Limit(Ann, 7*time.Second)
		o := w.out(Ann, "later")
		_, err := s.Send(w.Context(), o)
		var r *connectors.RetryError
		if !errors.As(err, &r) || r.After != 7*time.Second || r.All {
			w.Errorf("%v, want a pause of 7 s for this chat", err)
		}
		time.Sleep(7*time.Second - time.Millisecond)
		before := w.p.Sends()
		w.try(s, o, retry)
		if n := w.p.Sends(); n != before {
			w.Errorf("%d calls within the pause", n-before)
		}
		w.send(w.out(Bob, "at once"))
		time.Sleep(time.Millisecond)
		w.send(o)
		w.wantShown(Ann, "later")
		w.wantShown(Bob, "at once")
	}},
	{"Sending", "lost answer is ambiguous", func(w *world) {
		w.need(w.p.Lose != nil, w.p.Drop != nil)
		s := w.greeted(Ann, Bob)
		arrived, dropped := w.out(Ann, "arrived"), w.out(Bob, "dropped")
		w.p.Lose(Ann)
		w.try(s, arrived, ambiguous)
		w.p.Drop(Bob)
		w.try(s, dropped, ambiguous)
		w.wantShown(Ann, "arrived")
		w.wantShown(Bob)
		switch c := w.conn.(type) {
		case connectors.Finder:
			time.Sleep(time.Minute)
			receipt, found, err := c.Find(w.Context(), arrived)
			if err != nil || !found || receipt == "" {
				w.Errorf("what arrived: %q, %v, %v", receipt, found, err)
			}
			if receipt, found, err = c.Find(w.Context(), dropped); err != nil || found {
				w.Errorf("what did not arrive: %q, %v, %v", receipt, found, err)
			}
		case connectors.Resender:
			if c.Resend(arrived) {
				again := arrived
				again.Resent = true
				w.send(again)
				if shown := w.p.Shown(Ann); len(shown) != 2 || shown[1] == "arrived" {
					w.Errorf("a second copy without a mark: %q", shown)
				}
			}
		default:
			w.Error("the connector neither finds nor resends: ambiguous messages are lost")
		}
	}},
	{"Sending", "edits are never ambiguous", func(w *world) {
		w.need(w.p.Lose != nil)
		s := w.greeted(Ann)
		o := w.out(Ann, "two")
		o.Edit = w.send(w.out(Ann, "one"))
		w.p.Lose(Ann)
		w.try(s, o, plain)
		w.send(o)
		w.wantShown(Ann, "two")
	}},
	{"Sending", "unreachable platform is not ambiguous", func(w *world) {
		w.need(w.p.Unreach != nil)
		s := w.greeted(Ann)
		o := w.out(Ann, "hello")
		w.p.Unreach(Ann)
		w.try(s, o, plain)
		w.send(o)
		w.wantShown(Ann, "hello")
	}},
	{"Sending", "refused content is permanent, the route lives", func(w *world) {
		w.need(w.p.Refuse != nil)
		s := w.greeted(Ann)
		w.p.Refuse(Ann)
		w.try(s, w.out(Ann, "bad"), permanent)
		w.send(w.out(Ann, "good"))
		w.wantShown(Ann, "good")
	}},
	{"Sending", "dead route is named", func(w *world) {
		w.need(w.p.Kill != nil)
		s := w.greeted(Ann, Bob)
		w.p.Kill(Ann)
		w.try(s, w.out(Ann, "hello"), dead)
		w.send(w.out(Bob, "hello"))
	}},
	{"Sending", "answers to commands reach their person alone", func(w *world) {
		w.need(w.p.Command != nil, w.p.Alone != nil)
		w.greeted(Ann, Team)
		var late claybot.Outgoing
		for _, c := range []Chat{Ann, Team} {
			w.p.Command(c, 1, "status")
			synctest.Wait()
			m := w.inbox.newest()
			late = w.out(c, fmt.Sprintf("status of %v", c))
			late.Kind, late.Message, late.Route = claybot.OutgoingCommand, m.ID, m.ReplyRoute(m.to)
			_ = w.end() // the checks of shutdowns care
			w.restart()
			s, _ := w.conn.(connectors.Whisperer)
			if w.need(s != nil); m.Type != claybot.MessageCommand || !s.Whispers(late) || s.Whispers(w.out(c, "other")) {
				w.Errorf("%+v is no command, or its answer is not for its person", m)
			}
			w.try(w.sender(), late, sent)
		}
		w.wantShown(Ann)
		w.wantShown(Team)
		if got, others := w.p.Alone(1), w.p.Alone(2); len(got) != 2 || got[1] != late.Text || len(others) != 0 {
			w.Errorf("user 1 alone sees %q, user 2 %q", got, others)
		}
		time.Sleep(24 * time.Hour) // too late for the platform to show it in the group
		w.try(w.sender(), late, sent)
		w.wantShown(Team)
		if got := w.p.Shown(Ann); len(got) != 1 || !strings.HasSuffix(got[0], late.Text) {
			w.Errorf("the direct chat shows %q", got)
		}
	}},
	{"Sending", "unknown route is dead", func(w *world) {
		s := w.greeted()
		o := w.out(Ann, "hello")
		o.Route.ChannelID = ""
		w.try(s, o, dead)
	}},
	{"Sending", "drafts fit a message", func(w *world) {
		c, ok := w.conn.(connectors.Streamer)
		w.need(ok)
		sender := w.greeted(Ann)
		o := w.out(Ann, "begins")
		s := c.Streaming(o.Route)
		if s.Off || s.Every <= 0 || s.Limit <= 0 {
			w.Fatalf("%+v", s)
		}
		o.Edit = w.send(o)
		for _, text := range []string{strings.Repeat("word ", s.Limit/5), strings.Repeat("&", s.Limit), strings.Repeat("é", s.Limit)} {
			time.Sleep(s.Every)
			o.Text = sender.Split(text)[0]
			w.send(o)
		}
	}},
	{"Sending", "Split keeps the text whole", func(w *world) {
		s := w.greeted(Ann)
		for _, text := range longTexts() {
			before := len(w.p.Shown(Ann))
			parts := s.Split(text)
			checkParts(w, text, parts)
			for i, part := range parts {
				o := w.out(Ann, part)
				o.Part, o.Parts, o.Resent = i+1, len(parts), i == 0
				w.send(o)
				time.Sleep(3 * time.Second)
			}
			if n := len(w.p.Shown(Ann)) - before; n != len(parts) {
				w.Errorf("%d parts became %d messages", len(parts), n)
			}
		}
	}},
}

// extras are the checks of what is optional.
var extras = []check{
	{"Files, buttons", "files go out", func(w *world) {
		fs, ok := w.conn.(connectors.FileSender)
		w.need(ok, w.p.Files != nil)
		w.greeted(Ann)
		o := w.file()
		receipt, err := fs.SendFile(w.Context(), o, opened("the bytes"))
		if err != nil || receipt == "" {
			w.Fatalf("receipt %q, %v", receipt, err)
		}
		if got := fmt.Sprint(w.p.Files(Ann)); got != fmt.Sprint([]File{{"a.txt", "the bytes"}}) {
			w.Errorf("the chat has the files %s", got)
		}
		if _, err := fs.SendFile(w.Context(), o, func() (rc reader, err error) { return nil, errDisk }); !errors.Is(err, errDisk) {
			w.Errorf("a file that cannot be opened: %v", err)
		}
	}},
	{"Files, buttons", "lost answer to a file is ambiguous", func(w *world) {
		w.need(w.p.Lose != nil, w.p.Files != nil)
		w.greeted(Ann)
		o := w.file()
		w.p.Lose(Ann)
		w.tryFile(o, ambiguous)
		if got := len(w.p.Files(Ann)); got != 1 {
			w.Errorf("the chat has %d files", got)
		}
		c, ok := w.conn.(connectors.Finder)
		if !ok {
			return
		}
		time.Sleep(time.Minute)
		if receipt, found, err := c.Find(w.Context(), o); err != nil || !found || receipt == "" {
			w.Errorf("what arrived: %q, %v, %v", receipt, found, err)
		}
	}},
	{"Files, buttons", "429 and dead routes of files", func(w *world) {
		w.need(w.p.Limit != nil, w.p.Kill != nil, w.p.Files != nil)
		w.greeted(Ann)
		o := w.file()
		w.p.Limit(Ann, 7*time.Second)
		w.tryFile(o, retry)
		time.Sleep(7 * time.Second)
		w.tryFile(o, sent)
		time.Sleep(time.Minute) // a connector may pace what follows
		w.p.Kill(Ann)
		w.tryFile(w.file(), dead)
	}},
	{"Files, buttons", "reactions go on messages", func(w *world) {
		c, ok := w.conn.(connectors.Reactor)
		w.need(ok, w.p.Reactions != nil)
		w.greeted(Ann)
		route, message := w.p.Route(Ann, 1), w.inbox.all()[0].Context.MessageID
		for range 2 {
			if err := c.React(w.Context(), route, message, "👍"); err != nil {
				w.Error(err)
			}
		}
		if got := w.p.Reactions(Ann, message); len(got) != 1 {
			w.Errorf("reactions %q", got)
		}
		var refused *connectors.RefusedError
		if err := c.React(w.Context(), route, "999", "👍"); !errors.As(err, &refused) {
			w.Errorf("to a message that is not there: %v", err)
		}
	}},
	{"Files, buttons", "marks replace each other", func(w *world) {
		c, ok := w.conn.(connectors.Marker)
		w.need(ok, w.p.Reactions != nil)
		w.greeted(Ann)
		route, message := w.p.Route(Ann, 1), w.inbox.all()[0].Context.MessageID
		route.Aside = true
		all := []string{"👀", "✍", "👌"}
		for i, emoji := range []string{"👀", "👀", "✍", "👌", "👌", ""} {
			if err := c.Mark(w.Context(), route, claybot.Mark{Message: message, Emoji: emoji, Was: slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == emoji })}); err != nil {
				w.Error(err)
			}
			got := w.p.Reactions(Ann, message)
			if n := len(got); n > 1 || n == 1 && emoji == "" || n == 0 && emoji != "" {
				w.Errorf("mark %d, %q: reactions %q", i, emoji, got)
			}
		}
		if err := c.Mark(w.Context(), route, claybot.Mark{Message: "999", Was: all}); err != nil {
			var refused *connectors.RefusedError
			if !errors.As(err, &refused) {
				w.Errorf("of a message that is not there: %v", err)
			}
		}
	}},
	{"Files, buttons", "reactions of people come in", func(w *world) {
		w.need(w.p.React != nil)
		w.greeted(Ann)
		receipt, route := w.send(w.out(Ann, "an answer")), w.p.Route(Ann, 1)
		w.inbox.mu.Lock()
		w.inbox.deaf = 1
		w.inbox.mu.Unlock()
		for _, removed := range []bool{false, true} {
			w.p.React(Ann, 1, receipt, removed)
			w.redelivered()
			w.wantUnacked(0)
			w.inbox.mu.Lock()
			all := w.inbox.reactions
			w.inbox.mu.Unlock()
			if len(all) == 0 {
				w.Fatal("no reaction came in")
			}
			x := all[len(all)-1]
			if x.Connector != route.Connector || x.ChannelID != route.ChannelID || x.UserID != w.p.User(1) || x.Message != receipt ||
				x.Removed != removed || x.Group || x.Outsider || len(x.Emoji) == 0 || x.Emoji[0] != "👍" || claybot.Now()-x.At > claybot.Time(time.Hour/time.Millisecond) {
				w.Errorf("removed %t: %+v", removed, x)
			}
		}
	}},
	{"Files, buttons", "earlier messages are read", func(w *world) {
		c, ok := w.conn.(connectors.Historian)
		w.need(ok)
		w.greeted(Team)
		for _, text := range []string{"one", "two", "three"} {
			w.p.Write(Written{Chat: Team, User: 2, Text: text})
		}
		w.redelivered()
		span := connectors.Span{Channel: w.p.Route(Team, 1).ChannelID, Limit: 2}
		newest := w.said(c, span, true, "two", "three")
		span.Before, span.Limit = newest[0].ID, 1
		w.said(c, span, true, "one")
		span.Before, span.After, span.Limit = "", newest[0].ID, 50
		w.said(c, span, false, "three")
		span.After = newest[1].ID
		w.said(c, span, false)
		for _, odd := range []connectors.Span{{Channel: "nowhere", Limit: 1}, {Channel: span.Channel, Before: "no id", Limit: 1}} {
			var refused *connectors.RefusedError
			if all, _, err := c.Said(w.Context(), odd); !errors.As(err, &refused) {
				w.Errorf("%+v is %v, %v", odd, all, err)
			}
		}
	}},
	{"Files, buttons", "button press is an answer", func(w *world) {
		receipt := w.asked(Ann)
		w.p.Press(Ann, 1, receipt, "Approve")
		w.redelivered()
		w.wantPress(1)
		w.wantUnacked(0)
	}},
	{"Files, buttons", "full store loses no button press", func(w *world) {
		receipt := w.asked(Ann)
		full := true
		w.inbox.answer = func(connectors.Press) (r connectors.PressResult, err error) {
			if full {
				return r, errDisk
			}
			return r, nil
		}
		w.p.Press(Ann, 1, receipt, "Approve")
		synctest.Wait()
		if n := len(w.inbox.presses); n != 0 {
			w.Errorf("%d answers stored", n)
		}
		w.inbox.mu.Lock()
		full = false
		w.inbox.mu.Unlock()
		w.redelivered()
		if len(w.inbox.presses) == 0 { // the platform forgets presses: the button still works
			w.p.Press(Ann, 1, receipt, "Approve")
			w.redelivered()
		}
		w.wantPress(1)
	}},
	{"Files, buttons", "button presses carry who pressed", func(w *world) {
		w.p.Press(Team, 2, w.asked(Team), "Approve")
		w.redelivered()
		w.wantPress(2)
	}},
}

// said reads a span, which must have the texts, and be by user 2.
func (w *world) said(c connectors.Historian, s connectors.Span, wantMore bool, want ...string) []claybot.Said {
	w.Helper()
	all, more, err := c.Said(w.Context(), s)
	var texts []string
	for _, m := range all {
		texts = append(texts, m.Text)
		if m.UserID != w.p.User(2) || m.ID == "" || m.Bot {
			w.Errorf("%+v says %+v", s, m)
		}
	}
	if err != nil || more != wantMore || !slices.Equal(texts, want) {
		w.Fatalf("%+v is %q, more %t, %v; want %q, more %t", s, texts, more, err, want, wantMore)
	}
	return all
}
