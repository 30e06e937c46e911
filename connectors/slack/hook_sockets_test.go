package slack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// Where Socket Mode is on beside the address for requests, Slack sends none; claybot says so as soon as it
// can know it, with the app token, and takes it back when Socket Mode is off.
func TestSocketModeAndHTTP(t *testing.T) {
	for _, c := range []struct {
		name, token string
		known       bool
	}{{"with the app token", appToken, true}, {"with one that slack refuses", "xapp-other", false}, {"without", "", false}} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			door := w.overHTTP(t)
			w.slack.Pull()
			w.cfg.AppToken = c.token
			w.Connector = New(w.cfg)
			door.Lead(w.Connector)
			w.start(t)
			for range 2 { // at the start, and after a look that could not say it
				if known := strings.Contains(w.Health().Err, "Socket Mode is on"); known != c.known {
					t.Errorf("%s: health %+v", c.name, w.Health())
				}
				w.slack.Fail(methodConnect, slacktest.Fault{Status: 502})
				time.Sleep(socketsAgain + time.Second)
			}
			if n := strings.Count(w.logs.String(), "socket mode is on"); c.known && n != 1 {
				t.Errorf("%s: logged %d times", c.name, n)
			}
			ts := w.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", Text: "hello"})
			time.Sleep(time.Second)
			if len(w.inbox.all()) != 0 {
				t.Errorf("%s: %s came without a socket", c.name, ts)
			}
			w.slack.Push(testHook, signingSecret, door)
			w.slack.Write(slacktest.Post{Channel: "DU1", User: "U1", Text: "and now?"})
			time.Sleep(socketsEvery + time.Second)
			if h := w.Health(); h.Err != "" {
				t.Errorf("%s: after the switch %+v", c.name, h)
			}
			if got := w.inbox.texts(); !slices.Contains(got, "and now?") {
				t.Errorf("%s: took %q", c.name, got)
			}
			noCanary(t, "health", w.Health().Err)
		})
	}
}

// What comes on a socket and as a request, because the app was switched while it was on its way, is one
// message: an event, a mention, a command and a press of an offer.
func TestSocketAndHTTPAtOnce(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		posts := map[string]string{
			"events_api":     `{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":{"type":"message","channel":"DU1","channel_type":"im","user":"U1","text":"one","ts":"1700000000.000100"}}`,
			"mention":        `{"type":"event_callback","team_id":"T1","event_id":"Ev2","event":{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> two","ts":"1700000000.000200"}}`,
			"slash_commands": `{"command":"/claybot","text":"status","team_id":"T1","channel_id":"DU1","user_id":"U1","trigger_id":"1.2.3"}`,
			"interactive":    `{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"channel":{"id":"DU1"},"message":{"ts":"1.5"},"actions":[{"action_id":"offer/0","value":"\"/undo 1\"","action_ts":"9.9"}]}`,
		}
		twin := New(Config{BotToken: botToken, Hook: testHook, SigningSecret: signingSecret, APIURL: w.cfg.APIURL, HTTP: w.cfg.HTTP, Log: w.cfg.Log})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- twin.Run(ctx, w.handler) }()
		defer func() { cancel(); <-ended }()
		synctest.Wait()
		for kind, payload := range posts {
			if kind == "mention" {
				kind = "events_api"
			}
			for range 2 {
				w.slack.Envelope(kind, json.RawMessage(payload))
				w.settled(t)
				if status := requested(t, twin, kind, payload); status != http.StatusOK {
					t.Errorf("%s: the request got %d", kind, status)
				}
			}
		}
		synctest.Wait()
		if got := w.inbox.all(); len(got) != len(posts) {
			t.Errorf("%d messages of %d: %+v", len(got), len(posts), got)
		}
	})
}

// requested sends what an envelope of a kind has as a request, and returns its status.
func requested(t *testing.T, c *Connector, kind, payload string) int {
	t.Helper()
	content, body := "application/x-www-form-urlencoded", payload
	switch kind {
	case "events_api":
		content = "application/json"
	case "interactive":
		body = url.Values{"payload": {payload}}.Encode()
	default:
		var fields map[string]string
		if err := json.Unmarshal([]byte(payload), &fields); err != nil {
			t.Fatal(err)
		}
		form := make(url.Values)
		for name, value := range fields {
			form.Set(name, value)
		}
		body = form.Encode()
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/slack", strings.NewReader(body))
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", content)
	r.Header.Set(timestampHeader, stamp)
	r.Header.Set(signatureHeader, slacktest.Signature(signingSecret, stamp, []byte(body)))
	rec := httptest.NewRecorder()
	c.ServeHTTP(rec, r)
	return rec.Code
}
