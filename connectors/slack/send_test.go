package slack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

func outgoing(channel, thread, text string) claybot.Outgoing {
	return claybot.Outgoing{
		ID: "out-1", Kind: claybot.OutgoingAnswer, Text: text, Part: 1, Parts: 1, Tried: claybot.Now(),
		Route: claybot.Route{Connector: "slack", ChannelID: "T1/" + channel, ThreadID: thread},
	}
}

func TestSend(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		root := w.slack.Mention("C1", "U1", "hi", false)
		o := outgoing("C1", root, "**Hello** <!channel> & [you](https://example.com)")
		ts, err := w.Send(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		got := w.slack.Posted("C1")
		if len(got) != 1 || got[0].TS != ts || got[0].Thread != root || got[0].Unfurl ||
			got[0].Text != "*Hello* &lt;!channel&gt; &amp; <https://example.com|you>" ||
			got[0].Metadata.EventType != "claybot_out" || got[0].Metadata.EventPayload["id"] != "out-1" {
			t.Errorf("posted %+v", got)
		}
		o.Edit, o.Text = ts, "the _end_"
		if again, err := w.Send(t.Context(), o); err != nil || again != ts {
			t.Errorf("edit: %q, %v", again, err)
		}
		o.Edit, o.Resent = "", true
		if _, err := w.Send(t.Context(), o); err != nil {
			t.Error(err)
		}
		got = w.slack.Posted("C1")
		if len(got) != 2 || got[0].Text != "the _end_" || got[0].Edits != 1 || !strings.HasPrefix(got[1].Text, "(sent again: ") {
			t.Errorf("posted %+v", got)
		}
	})
}

// Every failure has one meaning.
func TestOutcome(t *testing.T) {
	type kind string
	const (
		plainError kind = "not sent"
		ambiguous  kind = "ambiguous"
		retry      kind = "retry"
		dead       kind = "dead route"
		stop       kind = "permanent"
		gone       kind = "edit is gone"
	)
	kindOf := func(err error) kind {
		var a *connectors.AmbiguousError
		var r *connectors.RetryError
		var p *connectors.PermanentError
		switch {
		case errors.Is(err, connectors.ErrEditGone):
			return gone
		case errors.As(err, &a):
			return ambiguous
		case errors.As(err, &r):
			return retry
		case errors.As(err, &p) && p.DeadRoute:
			return dead
		case errors.As(err, &p):
			return stop
		case err == nil:
			return "nil"
		}
		return plainError
	}
	code := func(c string) slacktest.Fault { return slacktest.Fault{Error: c} }
	for _, c := range []struct {
		name       string
		fault      slacktest.Fault
		post, edit kind
	}{
		{"route", code("is_archived"), dead, dead},
		{"not in channel", code("not_in_channel"), dead, dead},
		{"account", code("token_revoked"), stop, stop},
		{"content", code("no_text"), stop, stop},
		{"no thread there", code("restricted_action_non_threadable_channel"), stop, stop},
		{"only threads there", code("restricted_action_thread_only_channel"), stop, stop},
		{"server", code("internal_error"), ambiguous, plainError},
		{"edit gone", code("message_not_found"), plainError, gone},
		{"no more edits", code("edit_window_closed"), plainError, gone},
		{"unknown code", code("something_else"), plainError, plainError},
		{"rate in the body", code("ratelimited"), retry, retry},
		{"429", slacktest.Fault{RetryAfter: 7 * time.Second}, retry, retry},
		{"503", slacktest.Fault{Status: http.StatusServiceUnavailable}, ambiguous, plainError},
		{"503 after the work", slacktest.Fault{Status: http.StatusBadGateway, Done: true}, ambiguous, plainError},
		{"403", slacktest.Fault{Status: http.StatusForbidden}, plainError, plainError},
		{"redirect", slacktest.Fault{Status: http.StatusFound}, plainError, plainError},
		{"HTML with 200", slacktest.Fault{Status: http.StatusOK}, ambiguous, plainError},
		{"cut", slacktest.Fault{Cut: true}, ambiguous, plainError},
		{"lost", slacktest.Fault{Lost: true}, ambiguous, plainError},
		{"hang", slacktest.Fault{Hang: true}, ambiguous, plainError},
	} {
		for method, want := range map[string]kind{methodPost: c.post, methodUpdate: c.edit} {
			t.Run(c.name+" "+method, func(t *testing.T) {
				inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
					channel, _ := w.slack.DM("U1", "hi")
					o := outgoing(channel, "", "text")
					if method == methodUpdate {
						ts, err := w.Send(t.Context(), o)
						if err != nil {
							t.Fatal(err)
						}
						o.Edit = ts
					}
					w.slack.Fail(method, c.fault)
					_, err := w.Send(t.Context(), o)
					if got := kindOf(err); got != want {
						t.Errorf("%v is %q, want %q", err, got, want)
					}
					noCanary(t, "error", err.Error())
				})
			})
		}
	}
}

// What never left is no ambiguity.
func TestNotSent(t *testing.T) {
	refused := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
	c := New(Config{BotToken: botToken, AppToken: appToken, APIURL: "http://slack.test/api/", HTTP: &http.Transport{DialContext: refused}})
	_, err := c.Send(t.Context(), outgoing("C1", "", "text"))
	var a *connectors.AmbiguousError
	if err == nil || errors.As(err, &a) {
		t.Errorf("%v: want an error that is not ambiguous", err)
	}
	var p *connectors.PermanentError
	if _, err := c.Send(t.Context(), claybot.Outgoing{Text: "x"}); !errors.As(err, &p) || !p.DeadRoute {
		t.Errorf("no channel: %v", err)
	}
}

// A refusal for rate is obeyed as it says, up to a day, and for a while when it
// names no time.
func TestRetryAfterIsBounded(t *testing.T) {
	for header, want := range map[string]string{
		"": "5", "0": "5", "-1": "5", "soon": "5", "7": "7", "86400": "86400", "86401": "86400",
		"3000000000": "86400", "99999999999999999999999": "86400",
	} {
		c := caller{Client: http.Client{Transport: answering(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {header}}, Body: http.NoBody}, nil
		})}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://slack.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Retry-After"); got != want {
			t.Errorf("%q is obeyed for %s s, want %s", header, got, want)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// answering is a transport that answers by itself.
type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// Twenty people who are answered at once share the edits of the workspace: none is refused,
// and each final text is there at once.
func TestManyAnswersGrow(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		var people sync.WaitGroup
		for i := range 20 {
			people.Go(func() {
				channel, _ := w.slack.DM(fmt.Sprint("U", 10+i), "hi")
				o := outgoing(channel, "", "the beginning")
				ts, err := w.Send(t.Context(), o)
				if err != nil {
					t.Error(err)
					return
				}
				o.Edit, o.Progress = ts, true
				for n := range 30 {
					time.Sleep(time.Second)
					o.Text = fmt.Sprint("grown ", n)
					var wait *connectors.RetryError
					if _, err := w.Send(t.Context(), o); err != nil && !errors.As(err, &wait) {
						t.Error(err)
					}
				}
				o.Text, o.Progress = "the whole", false
				if _, err := w.Send(t.Context(), o); err != nil {
					t.Errorf("the final text of %d: %v", i, err)
				}
				if m := w.slack.Posted(channel); len(m) != 1 || m[0].Text != "the whole" {
					t.Errorf("%d reads %+v", i, m)
				}
			})
		}
		people.Wait()
		calls := w.slack.Calls(methodUpdate)
		refused := 0
		for _, c := range calls {
			if c.Status == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused > 0 || len(calls) < 45 {
			t.Errorf("%d edits, %d refused; want at least 45 of 50 and none", len(calls), refused)
		}
	})
}

// Edits have a limit of the workspace: when one is refused, edits of all channels pause for
// as long as Slack says, and posts go on.
func TestEditsPauseTogether(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		var edits []claybot.Outgoing
		for _, user := range []string{"U1", "U2", "U3"} {
			channel, _ := w.slack.DM(user, "hi")
			o := outgoing(channel, "", "begins")
			ts, err := w.Send(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			o.Edit = ts
			edits = append(edits, o)
		}
		refused, sent := 0, 0
		for i := range 100 {
			var r *connectors.RetryError
			switch _, err := w.Send(t.Context(), edits[i%3]); {
			case err == nil:
				sent++
			case errors.As(err, &r):
				refused++
			default:
				t.Fatal(err)
			}
		}
		if n := len(w.slack.Calls(methodUpdate)); n != 51 || sent != 50 || refused != 50 {
			t.Errorf("%d calls for 100 edits: %d sent, %d refused; want 50 and the first refusal", n, sent, refused)
		}
		if _, err := w.Send(t.Context(), outgoing("DU1", "", "a post")); err != nil {
			t.Errorf("a post meanwhile: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := w.Send(t.Context(), edits[2]); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// An answer that was lost is found by its metadata and not sent twice.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		name   string
		thread bool
	}{{"channel", false}, {"thread", true}} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{HistoryDelay: 4 * time.Second, HistoryItems: 2}, func(t *testing.T, w *world) {
				root := w.slack.Say("", "C1", "U1", "hi")
				thread := ""
				if c.thread {
					thread = root
				}
				o := outgoing("C1", thread, "answer")
				w.slack.Fail(methodPost, slacktest.Fault{Lost: true})
				_, err := w.Send(t.Context(), o)
				var a *connectors.AmbiguousError
				if !errors.As(err, &a) {
					t.Fatal(err)
				}
				for range 7 { // more than a page of others
					w.slack.Write(slacktest.Post{Channel: "C1", User: "U1", Text: "more", Thread: thread})
				}
				posted := w.slack.Posted("C1")
				ts, found, err := w.Find(t.Context(), o)
				if err != nil || !found || ts != posted[0].TS {
					t.Errorf("found %q, %v, %v; posted %+v", ts, found, err, posted)
				}
				o.Part = 2
				if _, found, err := w.Find(t.Context(), o); found || err != nil {
					t.Errorf("another part: %v, %v", found, err)
				}
				o.Part, o.ID = 1, "out-2"
				if _, found, err := w.Find(t.Context(), o); found || err != nil {
					t.Errorf("another outgoing: %v, %v", found, err)
				}
				if w.slack.Duplicates() != 0 {
					t.Error("posted twice")
				}
			})
		})
	}
}

// Without the scope for history there is no lookup, and the connector says so.
func TestFindWithoutScope(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		o := outgoing(channel, "", "answer")
		w.slack.Fail(methodHistory, slacktest.Fault{Error: "missing_scope", Needed: "im:history"}, slacktest.Fault{RetryAfter: 9 * time.Second})
		var p *connectors.PermanentError
		if _, found, err := w.Find(t.Context(), o); found || !errors.As(err, &p) || !strings.Contains(err.Error(), "im:history") {
			t.Errorf("%v, %v: want a permanent error with the scope", found, err)
		}
		if !w.Resend(o) {
			t.Error("what cannot be looked up is sent again")
		}
		once := o
		once.Once = true
		if w.Resend(once) {
			t.Error("a copy that is worse than none is sent")
		}
		var r *connectors.RetryError
		for range 2 {
			if _, _, err := w.Find(t.Context(), o); !errors.As(err, &r) {
				t.Errorf("%v: want to wait", err)
			}
		}
		if n := len(w.slack.Calls(methodHistory)); n != 2 {
			t.Errorf("%d lookups, want none during the penalty", n)
		}
		o.Edit = "1.0"
		if _, found, err := w.Find(t.Context(), o); found || err != nil {
			t.Errorf("an edit: %v, %v", found, err)
		}
	})
}

// A text whose markup Slack refuses goes out as plain text once.
func TestPlainTextFallback(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		w.slack.Fail(methodPost, slacktest.Fault{Error: "invalid_arguments"})
		if _, err := w.Send(t.Context(), outgoing(channel, "", "**bold** < plain")); err != nil {
			t.Fatal(err)
		}
		if got := w.slack.Posted(channel); len(got) != 1 || got[0].Text != "**bold** &lt; plain" {
			t.Errorf("posted %+v", got)
		}
	})
}

// Every part fits, also as an edit, and with the mark of a repeated send.
func TestSplit(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		ts, err := w.Send(t.Context(), outgoing(channel, "", "first"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			strings.Repeat("word ", 3000), strings.Repeat("&", 5000), strings.Repeat("é😀", 4500),
			"```go\n" + strings.Repeat("if a < b && c > d {}\n", 400) + "```", strings.Repeat("| a | b |\n|---|---|\n| 1 | 2 |\n\n", 200),
		} {
			for _, part := range w.Split(text) {
				if n := utf8.RuneCountInString(escape(strings.Repeat("x", texts.ResentRoom()) + part)); n > maxTextChars {
					t.Errorf("part of %d characters", n)
				}
				o := outgoing(channel, "", part)
				o.Edit, o.Resent = ts, true
				if _, err := w.Send(t.Context(), o); err != nil {
					t.Errorf("edit with %.20q: %v", part, err)
				}
			}
		}
	})
}
