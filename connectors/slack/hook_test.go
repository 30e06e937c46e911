package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// overHTTP makes the connector take requests in place of opening sockets.
func (w *world) overHTTP(t *testing.T) *connectorstest.Doorway {
	t.Helper()
	w.cfg.Hook, w.cfg.SigningSecret, w.cfg.AppToken = testHook, signingSecret, ""
	w.Connector = New(w.cfg)
	door := &connectorstest.Doorway{}
	door.Lead(w.Connector)
	w.slack.Push(testHook, signingSecret, door)
	if err := w.slack.Verify(); err != nil {
		t.Fatal(err)
	}
	return door
}

// refusing gives the connector a handler that knows its chats, and stores nothing while the flag is set.
func (w *world) refusing() *atomic.Bool {
	full := &atomic.Bool{}
	w.handler = &people{inbox: w.inbox}
	w.inbox.before = func(context.Context, claybot.AgentMessage) error {
		if full.Load() {
			return errors.New("disk full")
		}
		return nil
	}
	return full
}

func TestHTTPRequests(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.overHTTP(t)
		w.inbox.before = func(_ context.Context, m claybot.AgentMessage) error {
			if m.Text == "unstored" {
				return errors.New("disk full")
			}
			return nil
		}
		event := func(text, ts string) string {
			return fmt.Sprintf(`{"type":"event_callback","team_id":"T1","event_time":%d,"event":{"type":"message","channel":"DU1","channel_type":"im","user":"U1","text":%q,"ts":%q}}`, time.Now().Unix(), text, ts)
		}
		const form, isJSON = "application/x-www-form-urlencoded", "application/json"
		type sent struct {
			kind, body, secret string
			at                 time.Duration
			twice, unsigned    bool
		}
		post := func(s sent) *httptest.ResponseRecorder {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/hooks/slack", strings.NewReader(s.body))
			stamp := strconv.FormatInt(time.Now().Add(s.at).Unix(), 10)
			r.Header.Set("Content-Type", s.kind)
			if !s.unsigned {
				r.Header.Set(timestampHeader, stamp)
				r.Header.Set(signatureHeader, slacktest.Signature(s.secret, stamp, []byte(s.body)))
			}
			if s.twice {
				r.Header.Add(signatureHeader, r.Header.Get(signatureHeader))
			}
			rec := httptest.NewRecorder()
			w.ServeHTTP(rec, r)
			return rec
		}
		if rec := post(sent{kind: isJSON, body: event("early", "1.1"), secret: signingSecret}); rec.Code != http.StatusServiceUnavailable {
			t.Errorf("before the start: %d", rec.Code)
		}
		w.start(t)
		for _, tt := range []struct {
			name   string
			sent   sent
			status int
			said   string
			posted string
		}{
			{"as it should be", sent{kind: isJSON, body: event("one", "1.1"), secret: signingSecret}, 200, "", "one"},
			{"again", sent{kind: isJSON, body: event("one", "1.1"), secret: signingSecret}, 200, "", ""},
			{"a clock that is 4 minutes late", sent{kind: isJSON, body: event("two", "2.1"), secret: signingSecret, at: -4 * time.Minute}, 200, "", "two"},
			{"the verification", sent{kind: isJSON, body: `{"type":"url_verification","challenge":"abc"}`, secret: signingSecret}, 200, "abc", ""},
			{"the verification of a stranger", sent{kind: isJSON, body: `{"type":"url_verification","challenge":"abc"}`, secret: "other"}, 401, "", ""},
			{"another secret", sent{kind: isJSON, body: event("x", "3.1"), secret: "other"}, 401, "", ""},
			{"no secret", sent{kind: isJSON, body: event("x", "3.1")}, 401, "", ""},
			{"not signed", sent{kind: isJSON, body: event("x", "3.1"), unsigned: true}, 401, "", ""},
			{"two signatures", sent{kind: isJSON, body: event("x", "3.1"), secret: signingSecret, twice: true}, 401, "", ""},
			{"old", sent{kind: isJSON, body: event("x", "3.1"), secret: signingSecret, at: -6 * time.Minute}, 401, "", ""},
			{"of tomorrow", sent{kind: isJSON, body: event("x", "3.1"), secret: signingSecret, at: 24 * time.Hour}, 401, "", ""},
			{"too large", sent{kind: isJSON, body: strings.Repeat(" ", maxFrameBytes) + event("x", "3.1"), secret: signingSecret}, 400, "", ""},
			{"no JSON", sent{kind: isJSON, body: "hello", secret: signingSecret}, 200, "", ""},
			{"no form", sent{kind: form, body: "%zz", secret: signingSecret}, 200, "", ""},
			{"a form without a command", sent{kind: form, body: "a=b", secret: signingSecret}, 200, "", ""},
			{"an action that is not known", sent{kind: form, body: "payload=%7B%22type%22%3A%22future%22%7D", secret: signingSecret}, 200, "", ""},
			{"an event that is not known", sent{kind: isJSON, body: `{"type":"event_callback","team_id":"T1","event":{"type":"future"}}`, secret: signingSecret}, 200, "", ""},
			{"a limit of Slack", sent{kind: isJSON, body: `{"type":"app_rate_limited","team_id":"T1","minute_rate_limited":1}`, secret: signingSecret}, 200, "", ""},
			{"not stored", sent{kind: isJSON, body: event("unstored", "4.1"), secret: signingSecret}, 503, "", ""},
		} {
			before := len(w.inbox.texts())
			rec := post(tt.sent)
			got := strings.Join(w.inbox.texts()[before:], ", ")
			if rec.Code != tt.status || rec.Body.String() != tt.said || got != tt.posted {
				t.Errorf("%s: %d %q, posted %q, want %d, %q, %q", tt.name, rec.Code, rec.Body, got, tt.status, tt.said, tt.posted)
			}
		}
	})
}

// Commands, buttons and forms work over HTTP as they do over sockets, and a removed app ends the
// connector.
func TestHTTPInteractions(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.overHTTP(t)
		w.start(t)
		unfit(t, w)
		w.slack.Slash("DU1", "U1", "/claybot", "status")
		synctest.Wait()
		if all := w.inbox.all(); len(all) == 0 || all[len(all)-1].message.Command != "status" {
			t.Errorf("got %+v", all)
		}
		w.slack.Uninstall()
		synctest.Wait()
		if err := <-w.ended; !permanent(err) {
			t.Errorf("ended with %v", err)
		}
	})
}

// From sockets to HTTP and back, while a person writes: each message comes once.
func TestSocketsAndHTTP(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		var want []string
		sockets := w.cfg
		for i := range 12 {
			if i%2 == 0 {
				w.slack.Pull()
				w.cfg = sockets
				w.Connector = New(w.cfg)
			} else {
				w.overHTTP(t)
			}
			w.start(t)
			for n := range 3 {
				text := fmt.Sprintf("%d of round %d", n, i)
				want = append(want, text)
				w.slack.DM("U1", text)
			}
			if i%3 > 0 {
				synctest.Wait()
			}
			w.stop()
			<-w.ended
		}
		w.slack.Pull()
		w.cfg = sockets
		w.Connector = New(w.cfg)
		w.start(t)
		time.Sleep(10 * time.Minute)
		w.settled(t)
		got := w.inbox.texts()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || w.slack.Traffic().Dropped > 0 {
			t.Errorf("got %q, want %q; %+v", got, want, w.slack.Traffic())
		}
	})
}

// What Slack gave up while nothing could be stored, or nothing arrived, is read from the history.
func TestHTTPGaps(t *testing.T) {
	for _, name := range []string{"store", "way in"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				door := w.overHTTP(t)
				full := w.refusing()
				outage := func(on bool) {
					switch {
					case name == "store":
						full.Store(on)
					case on:
						door.Lead(nil)
					default:
						door.Lead(w.Connector)
					}
				}
				w.start(t)
				w.slack.DM("U1", "first")
				synctest.Wait()
				time.Sleep(time.Minute)
				outage(true)
				w.slack.DM("U1", "lost?")
				time.Sleep(6*time.Minute + 30*time.Second)
				w.slack.DM("U1", "late")
				w.slack.DM("U2", "late too")
				time.Sleep(20 * time.Second)
				outage(false)
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				var got []string
				for _, in := range w.inbox.all() {
					if in.to.UserID == "U1" {
						got = append(got, in.message.Text)
					}
				}
				if !slices.Equal(got, []string{"first", "lost?", "late"}) || w.slack.Traffic().Dropped == 0 {
					t.Errorf("got %q; %+v; %s", got, w.slack.Traffic(), w.logs)
				}
			})
		})
	}
}

// Messages that come while an earlier one of the same person waits for its repeat do not overtake it.
func TestHTTPOrder(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.overHTTP(t)
		full := w.refusing()
		w.start(t)
		full.Store(true)
		w.slack.DM("U1", "one")
		time.Sleep(20 * time.Second)
		full.Store(false)
		w.slack.DM("U1", "two")
		w.slack.DM("U2", "of another")
		time.Sleep(10 * time.Second)
		w.slack.DM("U1", "three")
		time.Sleep(10 * time.Minute)
		w.settled(t)
		if got := w.inbox.texts(); !slices.Equal(got, []string{"of another", "one", "two", "three"}) {
			t.Errorf("got %q", got)
		}
	})
}

// Slack says when it drops events for a limit: they are read from the history.
func TestHTTPRateLimit(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		door := w.overHTTP(t)
		w.refusing()
		w.start(t)
		w.slack.DM("U1", "first")
		synctest.Wait()
		time.Sleep(time.Minute)
		began := time.Now()
		door.Lead(nil)
		w.slack.DM("U1", "dropped")
		time.Sleep(10 * time.Second)
		door.Lead(w.Connector)
		w.slack.Envelope("events_api", map[string]any{"type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": began.Unix()})
		time.Sleep(30 * time.Second) // before the event comes again
		synctest.Wait()
		if got := w.inbox.texts(); !slices.Equal(got, []string{"first", "dropped"}) {
			t.Errorf("got %q; %s", got, w.logs)
		}
	})
}

// Without a signing secret nothing starts.
func TestHTTPNeedsASecret(t *testing.T) {
	c := New(Config{BotToken: botToken, Hook: testHook, APIURL: "http://slack.test/api"})
	err := c.Run(t.Context(), newInbox())
	if !permanent(err) || !strings.Contains(err.Error(), "SLACK_SIGNING_SECRET is missing") || c.Limit() != 0 {
		t.Errorf("%v", err)
	}
}
