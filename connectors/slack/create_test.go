package slack

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// An app is created once, from the manifest as it is printed, whatever becomes of Slack's answer; no error has
// a secret.
func TestCreateApp(t *testing.T) {
	const token = slacktest.ConfigToken
	for _, c := range []struct {
		name, token string
		app         App
		fault       slacktest.Fault
		says        string
		made, maybe bool
	}{
		{"sockets", token, App{}, slacktest.Fault{}, "", true, false},
		{"requests", token, App{Hook: testHook, Name: "helper", Without: []Feature{Groups}}, slacktest.Fault{}, "", true, false},
		{"a long name", token, App{Name: strings.Repeat("x", 36)}, slacktest.Fault{}, "Slack allows 35", false, false},
		{"a bot token", botToken, App{}, slacktest.Fault{}, "begins with xoxe.xoxp-", false, false},
		{"a spent token", "xoxe.xoxp-1-canary", App{}, slacktest.Fault{}, "invalid_auth; it lasts for 12 hours", false, false},
		{"an expired token", token, App{}, slacktest.Fault{Error: "token_expired"}, "token_expired; it lasts", false, false},
		{"a broken manifest", token, App{}, slacktest.Fault{Error: "invalid_manifest"}, "refuses the manifest", false, false},
		{"too many calls", token, App{}, slacktest.Fault{RetryAfter: 30e9}, "try again in 30 seconds", false, false},
		{"an answer that is lost", token, App{}, slacktest.Fault{Lost: true}, "look at https://api.slack.com/apps", true, true},
		{"an answer that is cut", token, App{}, slacktest.Fault{Cut: true}, "look at https://api.slack.com/apps", true, true},
		{"a fault of slack", token, App{}, slacktest.Fault{Status: 500}, "HTTP status 500", false, true},
		{"an error of slack", token, App{}, slacktest.Fault{Error: "internal_error"}, "internal_error", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				if c.fault != (slacktest.Fault{}) {
					w.slack.Fail(methodCreate, c.fault)
				}
				got, err := w.CreateApp(t.Context(), c.token, c.app)
				if c.says == "" && (err != nil || got.Team != "test" || !appID.MatchString(got.ID)) {
					t.Fatalf("%+v, %v", got, err)
				}
				if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) || errors.Is(err, ErrMaybeCreated) != c.maybe {
					t.Errorf("%v", err)
				}
				if err != nil {
					noCanary(t, "error", err.Error())
					if strings.Contains(err.Error(), token) {
						t.Errorf("the error has the token: %v", err)
					}
				}
				all := w.slack.Created()
				if (len(all) == 1) != c.made || len(all) > 1 || c.made && all[0] != c.app.JSON() {
					t.Errorf("%d apps: %q", len(all), all)
				}
			})
		})
	}
}

// The emulator refuses manifests as Slack does, and takes the token for nothing else.
func TestCreateAppRefused(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		said := creation{Error: "invalid_manifest"}
		said.Errors = append(said.Errors, struct {
			Message string `json:"message"`
			Pointer string `json:"pointer"`
		}{"Interactivity requires\na Request URL", "/settings/interactivity"})
		if err := said.refusal(); !strings.Contains(err.Error(), "/settings/interactivity: Interactivity requires a Request URL") {
			t.Error(err)
		}
		w.cfg.BotToken = slacktest.ConfigToken
		if _, err := New(w.cfg).api.AuthTestContext(t.Context()); err == nil || !strings.Contains(err.Error(), "not_allowed_token_type") {
			t.Errorf("auth.test with the token of a person: %v", err)
		}
	})
}
