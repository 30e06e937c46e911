package slack

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

// slashed lets a person write /claybot status in a channel, and returns an answer of claybot to it.
func (w *world) slashed(t *testing.T, channel, user string) claybot.Outgoing {
	t.Helper()
	w.slack.Slash(channel, user, "/claybot", "status")
	w.settled(t)
	all := w.inbox.all()
	m := all[len(all)-1]
	if m.message.Command != "status" {
		t.Fatalf("got %+v", m)
	}
	o := outgoing(channel, "", "the **status**")
	o.Kind, o.Message, o.Route = claybot.OutgoingCommand, m.message.ID, m.message.ReplyRoute(m.to)
	o.Route.ThreadID = "1700000000.000100" // the conversation that it is about
	return o
}

// stored returns the addresses that are stored.
func (w *world) stored(t *testing.T) (n int) {
	t.Helper()
	all, err := w.cfg.Marks.ListCheckpoints(t.Context(), addressPrefix)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// inSlashWorld is inWorld with a connector that runs, and stores what it has to.
func inSlashWorld(t *testing.T, test func(t *testing.T, w *world)) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.cfg.Marks = &marks{kept: make(map[string]string)}
		w.Connector = New(w.cfg)
		w.start(t)
		test(t, w)
		if err := w.slack.WaitAcked(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What claybot answers to a slash command reaches its person alone, also where the bot is no member
// and after a restart. What a run answers is for the conversation.
func TestSlashAnswers(t *testing.T) {
	inSlashWorld(t, func(t *testing.T, w *world) {
		for _, tt := range []struct {
			name, channel, user string
			before              func()
		}{
			{"in a channel", "C1", "U1", func() {}},
			{"without the bot", "C2", "U2", func() { w.slack.Leave("C2", true) }},
			{"in a direct chat of others", "DOTHERS", "U3", func() { w.slack.Leave("DOTHERS", true) }},
			{"in the direct chat", "DU4", "U4", func() {}},
			{"of another workspace", "C1", "T9/U5", func() {}},
		} {
			tt.before()
			o := w.slashed(t, tt.channel, tt.user)
			w.restart(t)
			if receipt, err := w.Send(t.Context(), o); err != nil || receipt != "" {
				t.Errorf("%s: %q, %v", tt.name, receipt, err)
			}
			_, user, foreign := strings.Cut(tt.user, "/")
			if !foreign {
				user = tt.user
			}
			if said := w.slack.Whispers(user); len(said) != 1 || !said[0].Responds || said[0].Channel != tt.channel || said[0].Thread != "" || said[0].Text != "the *status*" {
				t.Errorf("%s: %+v", tt.name, said)
			}
		}
		o := w.slashed(t, "C1", "U1")
		o.Run, o.Route.ThreadID = "r1", ""
		if ts, err := w.Send(t.Context(), o); err != nil || ts == "" {
			t.Errorf("the answer of a run: %q, %v", ts, err)
		}
		var posted []string
		for _, c := range []string{"C1", "C2", "DOTHERS", "DU1", "DU2", "DU3", "DU4"} {
			for _, m := range w.slack.Posted(c) {
				posted = append(posted, c+" "+m.Text)
			}
		}
		if !slices.Equal(posted, []string{"C1 the *status*"}) {
			t.Errorf("posted %q", posted)
		}
	})
}

// An address takes five messages within 30 minutes. What comes later, or is refused, is a direct
// message that says what it belongs to, and the address is forgotten.
func TestSlashAnswersGoDirect(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(w *world, o claybot.Outgoing)
		asked  int // requests to the address
	}{
		{"used up", func(w *world, o claybot.Outgoing) {
			for range maxResponses {
				if _, err := w.Send(w.t.Context(), o); err != nil {
					w.t.Error(err)
				}
			}
			if n := w.stored(w.t); n != 0 {
				w.t.Errorf("%d addresses are stored after the last use", n)
			}
		}, maxResponses},
		{"used up, which was not recorded", func(w *world, o claybot.Outgoing) {
			kept, _ := w.cfg.Marks.(*marks)
			for range maxResponses {
				before := kept.values()
				if _, err := w.Send(w.t.Context(), o); err != nil {
					w.t.Error(err)
				}
				kept.restore(before)
			}
		}, maxResponses + 1},
		{"expired", func(w *world, _ claybot.Outgoing) { time.Sleep(responseLife) }, 0},
		{"expired for Slack alone", func(w *world, _ claybot.Outgoing) {
			w.slack.Fail(slacktest.Respond, slacktest.Fault{Error: "expired_url"})
		}, 1},
		{"not found", func(w *world, _ claybot.Outgoing) {
			w.slack.Fail(slacktest.Respond, slacktest.Fault{Status: http.StatusNotFound})
		}, 1},
		{"gone", func(w *world, _ claybot.Outgoing) {
			w.slack.Fail(slacktest.Respond, slacktest.Fault{Status: http.StatusGone})
		}, 1},
		{"refused", func(w *world, _ claybot.Outgoing) {
			w.slack.Fail(slacktest.Respond, slacktest.Fault{Error: "channel_is_archived"})
		}, 1},
		{"never stored", func(w *world, _ claybot.Outgoing) {
			w.cfg.Marks = &marks{kept: make(map[string]string)}
			w.restart(w.t)
		}, 0},
		{"stored by another token", func(w *world, _ claybot.Outgoing) {
			kept, _ := w.cfg.Marks.(*marks)
			cfg := w.cfg
			cfg.BotToken = "xoxb-canary-rotated"
			for key, value := range kept.values() {
				if !strings.HasPrefix(key, addressPrefix) {
					continue
				}
				a := w.unsealed(key, value)
				if a.url == "" || strings.Contains(value, a.url) {
					w.t.Errorf("stored %q", value)
				}
				_ = kept.SetCheckpoint(w.t.Context(), key, New(cfg).sealed(key, a))
			}
		}, 0},
		{"damaged", func(w *world, _ claybot.Outgoing) {
			kept, _ := w.cfg.Marks.(*marks)
			for key := range kept.values() {
				_ = kept.SetCheckpoint(w.t.Context(), key, "x")
			}
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inSlashWorld(t, func(t *testing.T, w *world) {
				o := w.slashed(t, "C1", "U1")
				tt.before(w, o)
				if _, err := w.Send(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				want := texts.SlackAnswersElsewhere + "\n\nthe *status*"
				if m := w.slack.Posted("DU1"); len(m) != 1 || m[0].Text != want || m[0].Thread != "" {
					t.Errorf("direct messages: %+v", m)
				}
				if n := len(w.slack.Calls(slacktest.Respond)); n != tt.asked {
					t.Errorf("%d requests to the address, want %d", n, tt.asked)
				}
				if m := w.slack.Posted("C1"); len(m) != 0 {
					t.Errorf("posted for all: %+v", m)
				}
				time.Sleep(responseLife + tidyAgain)
				if n := w.stored(t); n != 0 {
					t.Errorf("%d addresses are still stored", n)
				}
			})
		})
	}
}

// values and restore lose what was stored in between, as a crash does.
func (m *marks) values() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.kept)
}

func (m *marks) restore(kept map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = kept
}

// In the direct chat itself, the direct message says nothing beside.
func TestSlashAnswersInDirectChat(t *testing.T) {
	inSlashWorld(t, func(t *testing.T, w *world) {
		o := w.slashed(t, "DU1", "U1")
		time.Sleep(responseLife)
		if _, err := w.Send(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if m := w.slack.Posted("DU1"); len(m) != 1 || m[0].Text != "the *status*" {
			t.Errorf("direct messages: %+v", m)
		}
	})
}

// Each fault of the address has the outcome that it has elsewhere. What may have arrived cannot be
// looked up, and is sent again with a mark.
func TestSlashAnswersFail(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault slacktest.Fault
		is    func(error) bool
		shown int // whispers after a second try
	}{
		{"no answer", slacktest.Fault{Lost: true}, ambiguous, 2},
		{"hangs", slacktest.Fault{Hang: true}, ambiguous, 2},
		{"answer is cut", slacktest.Fault{Cut: true}, ambiguous, 2},
		{"server", slacktest.Fault{Status: http.StatusBadGateway}, ambiguous, 1},
		{"a page", slacktest.Fault{Status: http.StatusOK}, ambiguous, 1},
		{"a pause", slacktest.Fault{RetryAfter: 3 * time.Second}, func(err error) bool {
			var retry *connectors.RetryError
			return errors.As(err, &retry) && retry.After == 3*time.Second
		}, 1},
		{"content", slacktest.Fault{Error: "no_text"}, func(err error) bool {
			var refused *connectors.PermanentError
			return errors.As(err, &refused) && !refused.DeadRoute
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inSlashWorld(t, func(t *testing.T, w *world) {
				o := w.slashed(t, "C1", "U1")
				w.slack.Fail(slacktest.Respond, tt.fault)
				if tt.name == "content" {
					w.slack.Fail(slacktest.Respond, tt.fault) // without markup as well
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := w.Send(ctx, o)
				if !tt.is(err) {
					t.Errorf("got %v", err)
				}
				noCanary(t, "error", err.Error())
				if _, _, err := w.Find(t.Context(), o); !permanent(err) {
					t.Errorf("looked up: %v", err)
				}
				time.Sleep(3 * time.Second)
				o.Resent = ambiguous(err)
				if _, err := w.Send(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				said := w.slack.Whispers("U1")
				if len(said) != tt.shown || strings.HasPrefix(said[len(said)-1].Text, texts.To(t.Context(), claybot.Descriptor{}).Resent()) != o.Resent {
					t.Errorf("shown: %+v", said)
				}
				if len(w.slack.Posted("C1"))+len(w.slack.Posted("DU1")) != 0 {
					t.Error("posted")
				}
			})
		})
	}
}

func ambiguous(err error) bool { return errors.As(err, new(*connectors.AmbiguousError)) }

// A direct message that Slack refuses says nothing about the conversation.
func TestSlashAnswersWithoutDirectChat(t *testing.T) {
	for name, prepare := range map[string]func(s *slacktest.Server){
		"scope":  func(s *slacktest.Server) { s.Lack("im:write", true) },
		"person": func(s *slacktest.Server) { s.Fail(methodOpen, slacktest.Fault{Error: "user_disabled"}) },
		"post":   func(s *slacktest.Server) { s.Fail(methodPost, slacktest.Fault{Error: "messages_tab_disabled"}) },
	} {
		t.Run(name, func(t *testing.T) {
			inSlashWorld(t, func(t *testing.T, w *world) {
				o := w.slashed(t, "C1", "U1")
				time.Sleep(responseLife)
				prepare(w.slack)
				_, err := w.Send(t.Context(), o)
				var refused *connectors.PermanentError
				if !errors.As(err, &refused) || refused.DeadRoute {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// The address is stored before its message, and an envelope without it is not acknowledged.
func TestSlashAddressIsStoredFirst(t *testing.T) {
	inSlashWorld(t, func(t *testing.T, w *world) {
		kept, _ := w.cfg.Marks.(*marks)
		stored := 0
		w.inbox.before = func(context.Context, claybot.AgentMessage) error { stored = w.stored(t); return nil }
		kept.refuse(errors.New("disk full"))
		w.slack.Slash("C1", "U1", "/claybot", "status")
		time.Sleep(firstRetry / 2)
		if len(w.inbox.all()) != 0 || len(w.slack.Unacked()) != 1 {
			t.Error("posted or acknowledged without the address")
		}
		kept.refuse(nil)
		w.settled(t)
		if stored != 1 || len(w.inbox.all()) != 1 {
			t.Errorf("%d addresses were stored before the message", stored)
		}
	})
}

// An address that expired while claybot was down is removed at the start, and those of other connectors
// stay.
func TestSlashAddressesExpireAtStart(t *testing.T) {
	inSlashWorld(t, func(t *testing.T, w *world) {
		w.slashed(t, "C1", "U1")
		w.stop()
		<-w.ended
		kept, _ := w.cfg.Marks.(*marks)
		if err := kept.SetCheckpoint(t.Context(), addressPrefix+"other/T1/cmd/1", "0 0 x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(responseLife)
		if n := w.stored(t); n != 2 {
			t.Fatalf("%d addresses are stored", n)
		}
		w.Connector = New(w.cfg)
		w.start(t)
		if n := w.stored(t); n != 1 {
			t.Errorf("%d addresses are stored, want that of the other connector", n)
		}
	})
}

func (m *marks) refuse(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// An address of another host is not used: what it got would leave Slack.
func TestSlashAddressOfOthers(t *testing.T) {
	inSlashWorld(t, func(t *testing.T, w *world) {
		for _, to := range []string{"https://evil.test/commands/1", "http://hooks.slack.com/x", "https://slack.com@evil.test/x", "::"} {
			w.slack.Envelope("slash_commands", map[string]string{
				"command": "/claybot", "text": "status", "team_id": "T1", "channel_id": "C1", "user_id": "U1", "trigger_id": "1.2", "response_url": to,
			})
			w.settled(t)
		}
		synctest.Wait()
		if n := w.stored(t); n != 0 || len(w.inbox.all()) != 1 || strings.Contains(w.logs.String(), "evil") {
			t.Errorf("%d addresses are stored", n)
		}
	})
}

// A transport that quotes the address gets it into no error.
func TestErrorsKeepAddresses(t *testing.T) {
	const secret = "https://hooks.slack.com/commands/T1/1/response-secret"
	for name, rt := range map[string]transport{
		"refused": func(r *http.Request) (*http.Response, error) {
			return nil, errors.New("cannot reach " + r.URL.String())
		},
		"left": func(r *http.Request) (*http.Response, error) {
			return nil, &connectors.AmbiguousError{Err: errors.New("no answer of " + r.URL.String())}
		},
	} {
		c := New(Config{BotToken: botToken, AppToken: appToken, HTTP: rt})
		for _, to := range []string{secret, secret + "\x7f"} {
			err := c.respond(t.Context(), post{method: methodRespond, channel: "C1", respond: to}, "x", nil)
			if err == nil {
				t.Fatal("sent")
			}
			noCanary(t, name, err.Error())
		}
	}
}

// What a button answers to one person goes by the address of the press, also where the bot has left.
func TestWhispersRespond(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		root := w.slack.Mention("C1", "U1", "do it", false)
		ts := w.ask(t, "C1", root, claybot.Question{ID: "q1", Type: claybot.QuestionConfirm})
		w.slack.Leave("C1", true)
		w.click(t, "U2", "C1", ts, "Approve")
		w.wantWhisper(t, "U2", "This is not for you.")
		w.slack.Leave("C1", false)
		w.slack.Fail(slacktest.Respond, slacktest.Fault{Error: "expired_url"}, slacktest.Fault{Lost: true})
		w.click(t, "U3", "C1", ts, "Approve")
		w.wantWhisper(t, "U3", "This is not for you.")
		w.click(t, "U3", "C1", ts, "Approve")
		w.wantWhisper(t, "U3", "This is not for you.", "This is not for you.")
		var by []bool
		for _, user := range []string{"U2", "U3"} {
			for _, said := range w.slack.Whispers(user) {
				by = append(by, said.Responds)
			}
		}
		if !slices.Equal(by, []bool{true, false, true}) {
			t.Errorf("by the address: %v", by)
		}
	})
}

// Whatever answers a response_url, claybot reads of it a code or nothing.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{"ok", `{"ok":true}`, `{"ok":false,"error":"expired_url"}`, "channel_is_archived", "<html>", `{"ok":`, "", "null"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if code := responseCode(body); code != word(code) || code == "ok" && !bytes.Contains(body, []byte("ok")) {
			t.Errorf("%q is %q", body, code)
		}
	})
}
