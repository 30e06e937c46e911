package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
)

const firstRefresh = "xoxe-1-canary-first"

// A vault is secrets in memory, which may fail.
type vault struct {
	storage.Secrets
	mu    sync.Mutex
	fails func(set int) error // of each Set; nil: none
	sets  int
}

func (v *vault) Set(name string, secret []byte) error {
	v.mu.Lock()
	v.sets++
	n, fails := v.sets, v.fails
	v.mu.Unlock()
	if fails != nil {
		if err := fails(n); err != nil {
			return err
		}
	}
	return v.Secrets.Set(name, secret)
}

func (v *vault) failing(fails func(set int) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fails, v.sets = fails, 0
}

// stored is what is stored of the tokens.
func (v *vault) stored(t *testing.T) (p pair) {
	t.Helper()
	raw, err := v.Get("slack")
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inRotation runs a test with an app whose tokens Slack rotates.
func inRotation(t *testing.T, test func(t *testing.T, w *world, v *vault)) {
	t.Helper()
	sc := slacktest.Config{Rotation: &slacktest.Rotation{ClientID: "1.2", ClientSecret: "canary-secret", RefreshToken: firstRefresh}}
	inWorld(t, sc, func(t *testing.T, w *world) {
		v := &vault{Secrets: files.NewSecrets(t.TempDir())}
		w.cfg.BotToken = ""
		w.cfg.Rotation = &Rotation{ClientID: "1.2", ClientSecret: "canary-secret", RefreshToken: firstRefresh, Secrets: v}
		w.Connector = New(w.cfg)
		test(t, w, v)
	})
}

func (w *world) sends(t *testing.T, text string) {
	t.Helper()
	channel, ts := w.slack.DM("U1", "about "+text)
	w.settled(t)
	if _, err := w.Send(t.Context(), outgoing(channel, ts, text)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// The tokens are renewed before they expire, for days, and a restart goes on with the stored ones.
func TestRotation(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, v *vault) {
		w.start(t)
		w.sends(t, "one")
		if n := w.slack.Refreshed(); n != 1 {
			t.Fatalf("%d refreshes", n)
		}
		for day := range 3 {
			time.Sleep(24 * time.Hour)
			w.sends(t, fmt.Sprint("day ", day))
		}
		n := w.slack.Refreshed()
		if n < 7 || n > 9 {
			t.Errorf("%d refreshes in three days", n)
		}
		for _, c := range w.slack.Journal() {
			if c.Answer != "ok" {
				t.Errorf("%s: %s", c.Method, c.Answer)
			}
		}
		w.restart(t)
		w.sends(t, "again")
		if w.slack.Refreshed() != n {
			t.Error("a restart asks for new tokens")
		}
		if p := v.stored(t); !p.Asked.IsZero() || time.Until(p.Expires) < time.Hour {
			t.Errorf("stored are %+v", p)
		}
	})
}

// Tokens that end under load: each call is sent again with the next token, and one request brings it.
func TestRotationUnderLoad(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, v *vault) {
		w.start(t)
		channels := make([]string, 20)
		for i := range channels {
			channels[i], _ = w.slack.DM(fmt.Sprint("U", i), "hello")
		}
		w.settled(t)
		for round := range 3 {
			time.Sleep(2 * time.Minute) // a token that is younger is not replaced
			before := w.slack.Refreshed()
			w.slack.Expire()
			var sending sync.WaitGroup
			for _, channel := range channels {
				sending.Go(func() {
					if _, err := w.Send(t.Context(), outgoing(channel, "", fmt.Sprint("round ", round))); err != nil {
						t.Errorf("%s: %v", channel, err)
					}
				})
			}
			sending.Wait()
			if n := w.slack.Refreshed() - before; n != 1 {
				t.Errorf("%d refreshes", n)
			}
			for _, channel := range channels {
				posted := 0
				for _, m := range w.slack.Posted(channel) {
					if m.Text == fmt.Sprint("round ", round) {
						posted++
					}
				}
				if posted != 1 {
					t.Errorf("%s: %d messages", channel, posted)
				}
			}
		}
	})
}

// Between the request for tokens and their storing, anything may fail, and nothing is lost: the refresh
// token before still counts for a while.
func TestRotationFaults(t *testing.T) {
	full := errors.New("disk full")
	for name, test := range map[string]struct {
		slack []slacktest.Fault
		sets  func(set int) error
		asked bool // Slack has given tokens that were lost
	}{
		"answer lost":      {slack: []slacktest.Fault{{Lost: true}}, asked: true},
		"answer cut":       {slack: []slacktest.Fault{{Cut: true}}, asked: true},
		"slack fails":      {slack: []slacktest.Fault{{Status: 503}, {Error: "internal_error"}}},
		"too many calls":   {slack: []slacktest.Fault{{RetryAfter: time.Second}}},
		"store is full":    {sets: func(set int) error { return map[bool]error{true: full}[set <= 2] }},
		"full after Slack": {sets: func(set int) error { return map[bool]error{true: full}[set > 1 && set <= 6] }},
	} {
		t.Run(name, func(t *testing.T) {
			inRotation(t, func(t *testing.T, w *world, v *vault) {
				w.start(t)
				w.sends(t, "one")
				w.slack.Fail("oauth.v2.access", test.slack...)
				v.failing(test.sets)
				time.Sleep(11 * time.Hour)
				w.sends(t, "two")
				if h := w.Health(); h.State != connectors.StateLive || h.Err != "" {
					t.Errorf("%+v", h)
				}
				p, now := v.stored(t), w.rotation.now.Load()
				if want := map[bool]int{false: 2, true: 3}[test.asked]; w.slack.Refreshed() != want || p.Refresh != now.Refresh || !p.Asked.IsZero() {
					t.Errorf("%d refreshes, stored are %+v, used %+v", w.slack.Refreshed(), p, now)
				}
			})
		})
	}
}

// While the store fails, Slack is not asked: tokens that cannot be stored would be lost with the process.
func TestRotationAsksNotWithoutStore(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, v *vault) {
		w.start(t)
		w.sends(t, "one")
		v.failing(func(int) error { return errors.New("disk full") })
		time.Sleep(11 * time.Hour)
		w.sends(t, "two")
		if h := w.Health(); h.State != connectors.StateLive || !strings.Contains(h.Err, "disk full") || w.slack.Refreshed() != 1 {
			t.Errorf("%+v, %d refreshes", h, w.slack.Refreshed())
		}
		time.Sleep(2 * time.Hour) // expired: messages wait
		var later *connectors.RetryError
		channel, _ := w.slack.DM("U1", "x")
		if _, err := w.Send(t.Context(), outgoing(channel, "", "three")); !errors.As(err, &later) || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("sent: %v", err)
		}
		v.failing(nil)
		time.Sleep(10 * time.Minute)
		w.sends(t, "four")
	})
}

// A crash right after Slack's answer: the next process asks again with the token before.
func TestRotationCrash(t *testing.T) {
	for name, late := range map[string]bool{"at once": false, "after the grace period": true} {
		t.Run(name, func(t *testing.T) {
			inRotation(t, func(t *testing.T, w *world, v *vault) {
				w.start(t)
				w.sends(t, "one")
				var dead atomic.Bool
				v.failing(func(set int) error {
					dead.Store(set > 1)
					return map[bool]error{true: errors.New("killed")}[set > 1]
				})
				for !dead.Load() {
					time.Sleep(time.Minute)
				}
				w.stop()
				<-w.ended
				v.failing(nil)
				if p := v.stored(t); p.Asked.IsZero() {
					t.Errorf("stored are %+v", p)
				}
				if !late {
					w.Connector = New(w.cfg)
					w.start(t)
					w.sends(t, "two")
					if w.slack.Refreshed() != 3 {
						t.Errorf("%d refreshes", w.slack.Refreshed())
					}
					return
				}
				time.Sleep(time.Hour)
				w.Connector = New(w.cfg)
				w.start(t)
				w.sends(t, "two") // the access token before lasts
				if h := w.Health(); !strings.Contains(h.Err, "slack refuses SLACK_BOT_TOKEN: invalid_refresh_token") {
					t.Errorf("%+v", h)
				}
				err := <-w.ended // once it has expired
				if !permanent(err) || !strings.Contains(err.Error(), "copy a new refresh token") {
					t.Errorf("ended with %v", err)
				}
				w.slack.Revoke("xoxe-1-canary-second")
				r := *w.cfg.Rotation
				r.RefreshToken = "xoxe-1-canary-second"
				w.cfg.Rotation = &r
				w.Connector = New(w.cfg)
				w.start(t)
				w.sends(t, "three")
			})
		})
	}
}

// A new refresh token of the operator counts once, also after restarts with older ones, and a wrong one
// does not destroy what is stored.
func TestRotationSeeds(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, v *vault) {
		w.start(t)
		w.sends(t, "one")
		set := func(refresh string) {
			w.stop()
			<-w.ended
			r := *w.cfg.Rotation
			r.RefreshToken = refresh
			w.cfg.Rotation = &r
			w.Connector = New(w.cfg)
		}
		set("xoxe-1-canary-typo")
		w.start(t)
		if err := <-w.ended; !permanent(err) || !strings.Contains(err.Error(), "invalid_refresh_token") {
			t.Fatalf("ended with %v", err)
		}
		w.ended <- nil
		set(firstRefresh)
		w.start(t)
		w.sends(t, "two")
		n := w.slack.Refreshed()
		w.slack.Revoke("xoxe-1-canary-second")
		set("xoxe-1-canary-second")
		w.start(t)
		w.sends(t, "three")
		set(firstRefresh) // a member with the settings of yesterday
		w.start(t)
		w.sends(t, "four")
		if w.slack.Refreshed() != n+1 {
			t.Errorf("%d refreshes", w.slack.Refreshed()-n)
		}
	})
}

// A token that Slack refuses early, while it gives no new one: each is tried again in time.
func TestRotationEarlyEnd(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, _ *vault) {
		w.start(t)
		w.sends(t, "one")
		time.Sleep(time.Hour)
		channel, _ := w.slack.DM("U1", "x")
		w.settled(t)
		w.slack.Expire()
		w.slack.Fail("oauth.v2.access", slacktest.Fault{Status: 503}, slacktest.Fault{Status: 503}, slacktest.Fault{Status: 503})
		var later *connectors.RetryError
		if _, err := w.Send(t.Context(), outgoing(channel, "", "two")); !errors.As(err, &later) || later.After > time.Minute {
			t.Errorf("sent: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := w.Send(t.Context(), outgoing(channel, "", "two")); err != nil {
			t.Error(err)
		}
		if n := len(w.slack.Calls("oauth.v2.access")); n != 5 {
			t.Errorf("%d calls", n)
		}
	})
}

// An answer to a slash command goes by its response_url, without a token, also after the tokens changed.
func TestRotationSlash(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, _ *vault) {
		w.cfg.Marks = &marks{kept: make(map[string]string)}
		w.Connector = New(w.cfg)
		w.start(t)
		w.sends(t, "one")
		o := w.slashed(t, "C1", "U1")
		time.Sleep(2 * time.Minute)
		w.slack.Expire()
		w.sends(t, "two")
		w.restart(t)
		if _, err := w.Send(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := w.slack.Whispers("U1"); len(got) != 1 || !strings.Contains(got[0].Text, "status") {
			t.Errorf("whispers %+v", got)
		}
	})
}

// Members of a cluster share the tokens: one of them asks.
func TestRotationOfMembers(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, _ *vault) {
		tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir()})
		r := *w.cfg.Rotation
		r.Secrets = storage.NewTreeSecrets(tree, Folder)
		w.cfg.Rotation = &r
		w.Connector = New(w.cfg)
		w.start(t)
		synctest.Wait()
		members := []*Connector{w.Connector}
		for range 3 {
			members = append(members, New(w.cfg))
		}
		channel, _ := w.slack.DM("U1", "hello")
		w.settled(t)
		for round := range 3 {
			for i, m := range members {
				if _, err := m.Send(t.Context(), outgoing(channel, "", fmt.Sprint(round, " of ", i))); err != nil {
					t.Errorf("member %d: %v", i, err)
				}
			}
			time.Sleep(10*time.Hour + 10*time.Minute)
		}
		if n := w.slack.Refreshed(); n != 4 {
			t.Errorf("%d refreshes", n)
		}
	})
}

// A token that Slack revokes leaves an app with rotation installed; an app that is removed stops.
func TestRotationRevoked(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, _ *vault) {
		w.start(t)
		w.sends(t, "one")
		time.Sleep(time.Hour)
		w.slack.Expire()
		w.slack.TokensRevoked()
		w.settled(t)
		w.sends(t, "two")
		w.slack.Uninstall()
		if err := <-w.ended; !permanent(err) || !strings.Contains(err.Error(), "removed") {
			t.Errorf("ended with %v", err)
		}
	})
}

// What is missing or wrong stops the connector with the name of the setting.
func TestRotationSettings(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"SLACK_BOT_TOKEN is missing":                        func(c *Config) { c.Rotation.RefreshToken = "" },
		"SLACK_BOT_TOKEN does not begin with xoxe-":         func(c *Config) { c.Rotation.RefreshToken = "xoxe.xoxb-1-canary" },
		"SLACK_CLIENT_ID is missing":                        func(c *Config) { c.Rotation.ClientID = "" },
		"SLACK_CLIENT_SECRET is missing":                    func(c *Config) { c.Rotation.ClientSecret = "" },
		"slack refuses SLACK_CLIENT_ID: invalid_client_id":  func(c *Config) { c.Rotation.ClientID = "3.4" },
		"slack refuses SLACK_CLIENT_SECRET: bad_client_sec": func(c *Config) { c.Rotation.ClientSecret = "canary-wrong" },
		"SLACK_BOT_TOKEN is a token that Slack rotates":     func(c *Config) { c.Rotation, c.BotToken = nil, "xoxe.xoxb-1-canary" },
	} {
		inRotation(t, func(t *testing.T, w *world, _ *vault) {
			change(&w.cfg)
			w.Connector = New(w.cfg)
			w.start(t)
			err := <-w.ended
			if !permanent(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: ended with %v", want, err)
			}
			noCanary(t, want, err.Error())
		})
	}
}
