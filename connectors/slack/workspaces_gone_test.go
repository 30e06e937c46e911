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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/storage/files"
)

// A crash after Slack's answer, before all of it is stored, leaves the link as it was: the same link works
// again. Whichever write fails, nothing runs that is not stored.
func TestInstallCrash(t *testing.T) {
	for _, fails := range []string{"tokens", "list"} {
		inOrg(t, true, func(t *testing.T, o *org) {
			b, link := &browser{}, o.link()
			back := b.toSlack(o, link, "T1")
			o.vault.failing(func(set int) error {
				if fails == "tokens" || set > 1 {
					return errors.New("crash")
				}
				return nil
			})
			if rec := b.get(o, back); rec.Code != http.StatusServiceUnavailable || o.slacks["T1"].Installs() != 1 {
				t.Errorf("%s: %d %s", fails, rec.Code, rec.Body)
			}
			o.vault.failing(nil)
			o.start()
			if all, _ := o.sorted(); len(all) != 0 {
				t.Errorf("%s: %d workspaces after the crash", fails, len(all))
			}
			if rec := b.get(o, back); rec.Code != 400 { // Slack's code counts once
				t.Errorf("%s: the same answer of Slack: %d %s", fails, rec.Code, rec.Body)
			}
			if rec := b.get(o, b.toSlack(o, link, "T1")); rec.Code != 200 {
				t.Errorf("%s: the same link: %d %s", fails, rec.Code, rec.Body)
			}
			synctest.Wait()
			if err := o.answered("T1", "hello"); err != nil {
				t.Errorf("%s: %v", fails, err)
			}
		})
	}
}

// Two browsers with one link at once: one of them installs the app.
func TestInstallTwice(t *testing.T) {
	inOrg(t, false, func(t *testing.T, o *org) {
		link := o.link()
		var codes [2]int
		var both sync.WaitGroup
		for i, team := range []string{"T1", "T2"} {
			b := &browser{}
			back := b.toSlack(o, link, team)
			both.Go(func() { codes[i] = b.get(o, back).Code })
		}
		both.Wait()
		slices.Sort(codes[:])
		if codes != [2]int{200, 404} || o.slacks["T1"].Installs()+o.slacks["T2"].Installs() != 1 {
			t.Errorf("%v, installed %d and %d times", codes, o.slacks["T1"].Installs(), o.slacks["T2"].Installs())
		}
	})
}

// One workspace removes the app under load. The other one loses nothing and gets nothing twice; the one that
// is gone is reported once, its tokens are removed, and it can come back.
func TestUninstallUnderLoad(t *testing.T) {
	for _, rotates := range []bool{false, true} {
		inOrg(t, rotates, func(t *testing.T, o *org) {
			o.install("T1")
			o.install("T2")
			const people, rounds = 8, 6
			failed := make(map[string]int)
			var mu sync.Mutex
			for round := range rounds {
				if round == 3 {
					o.slacks["T2"].Uninstall()
				}
				var sending sync.WaitGroup
				for _, team := range []string{"T1", "T2"} {
					for i := range people {
						sending.Go(func() {
							channel, ts := o.slacks[team].DM(fmt.Sprint("U", i), fmt.Sprint(round))
							_, err := o.Send(t.Context(), claybot.Outgoing{
								ID: fmt.Sprint(team, i, "/", round), Route: claybot.Route{Connector: "slack", ChannelID: team + "/" + channel, ThreadID: ts}, Text: fmt.Sprint("re: ", round),
							})
							if err != nil {
								mu.Lock()
								failed[team]++
								mu.Unlock()
								if team == "T2" && !permanent(err) {
									t.Errorf("round %d: %v", round, err)
								}
							}
						})
					}
				}
				sending.Wait()
				time.Sleep(30 * time.Second)
			}
			if failed["T1"] != 0 || failed["T2"] != 3*people {
				t.Errorf("failed: %v", failed)
			}
			o.exactly("T1", people, rounds)
			if n := strings.Count(o.logs.String(), "the slack app was removed from a workspace"); n != 1 {
				t.Errorf("reported %d times", n)
			}
			want := "Test T2 (T2) has removed the app; to install it again, open the link that this prints: claybot slack install"
			if h := o.Health(); h.State != connectors.StateLive || h.Err != want {
				t.Errorf("%+v", h)
			}
			calls := len(o.slacks["T2"].Journal())
			o.start()
			time.Sleep(time.Minute)
			if raw, err := o.vault.Get(o.ledger.secretOf("T2")); err != nil || string(raw) != "{}" || len(o.slacks["T2"].Journal()) != calls {
				t.Errorf("after a restart: %s, %v, %d calls", raw, err, len(o.slacks["T2"].Journal())-calls)
			}
			if h := o.Health(); h.Err != want {
				t.Errorf("after a restart: %+v", h)
			}
			o.install("T2")
			if err := o.answered("T2", "back"); err != nil {
				t.Error(err)
			}
			if h := o.Health(); h.State != connectors.StateLive || h.Err != "" {
				t.Errorf("back: %+v", h)
			}
		})
	}
}

// exactly checks that what people wrote in a workspace, and the answers, arrived once.
func (o *org) exactly(team string, people, rounds int) {
	o.t.Helper()
	got := make(map[string]int)
	for _, in := range o.inbox.all() {
		if strings.HasPrefix(in.to.ChannelID, team+"/") {
			got[in.to.ChannelID+" "+in.message.Text]++
		}
	}
	for i := range people {
		for round := range rounds {
			if n := got[fmt.Sprintf("%s/DU%d %d", team, i, round)]; n != 1 {
				o.t.Errorf("%s: message %d of U%d arrived %d times", team, round, i, n)
			}
		}
		if n := len(o.slacks[team].Posted(fmt.Sprint("DU", i))); n != rounds {
			o.t.Errorf("%s: U%d got %d answers", team, i, n)
		}
	}
}

// A token that Slack refuses without saying that the app is gone stops its workspace alone; it is tried again,
// and the other one goes on.
func TestWorkspaceRefused(t *testing.T) {
	inOrg(t, false, func(t *testing.T, o *org) {
		o.install("T1")
		o.install("T2")
		for range 3 {
			o.slacks["T2"].Fail("auth.test", slacktest.Fault{Error: "account_inactive"})
		}
		time.Sleep(time.Minute)
		want := "Test T2 (T2): auth.test: slack refuses the token of the workspace Test T2 (T2): account_inactive; to install the app again, open the link that this prints: claybot slack install"
		if h := o.Health(); h.State != connectors.StateLive || h.Err != want {
			t.Errorf("%+v", h)
		}
		if err := o.answered("T1", "hello"); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * stoppedAgain)
		if h := o.Health(); h.Err != "" {
			t.Errorf("later: %+v", h)
		}
		if n := strings.Count(o.logs.String(), "a workspace of the slack app failed"); n != 1 {
			t.Errorf("reported %d times", n)
		}
	})
}

// After a gap, each workspace reads its own conversations alone: those of others are not there for its token.
func TestWorkspacesGap(t *testing.T) {
	inOrg(t, false, func(t *testing.T, o *org) {
		o.people = &people{inbox: o.inbox}
		o.start()
		o.install("T1")
		o.install("T2")
		own := map[string]string{"T1": "DU1", "T2": "DU2"}
		for team, channel := range own {
			o.slacks[team].DM(strings.TrimPrefix(channel, "D"), "before")
			if err := o.slacks[team].WaitAcked(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		o.stop()
		time.Sleep(2 * gapAfter)
		o.start()
		time.Sleep(time.Minute)
		for team, channel := range own {
			read := append(o.slacks[team].Calls(methodHistory), o.slacks[team].Calls(methodReplies)...)
			if len(read) == 0 {
				t.Errorf("%s: no conversation was read", team)
			}
			for _, call := range read {
				if got := call.Form.Get("channel"); got != channel {
					t.Errorf("%s: the conversation %s was read", team, got)
				}
			}
		}
		if h := o.Health(); h.State != connectors.StateLive || h.Err != "" {
			t.Errorf("%+v", h)
		}
		if told := o.people.told(); len(told) > 0 {
			t.Errorf("notices: %q", told)
		}
	})
}

// Members that share the store follow each other: what comes for a workspace that another member has just
// added is not lost.
func TestWorkspacesMembers(t *testing.T) {
	inOrg(t, true, func(t *testing.T, o *org) {
		second := NewWorkspaces(o.cfg, o.oauth)
		o.install("T1") // by the first one, before the second knows
		o.door.Lead(second)
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { defer close(done); _ = second.Run(ctx, o.inbox) }()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		o.install("T2")
		if err := o.answered("T2", "hello"); err != nil {
			t.Error(err)
		}
		if _, err := second.Send(t.Context(), claybot.Outgoing{ID: "x", Route: claybot.Route{Connector: "slack", ChannelID: "T2/DU1"}, Text: "of the second"}); err != nil {
			t.Error(err)
		}
		o.slacks["T2"].Uninstall() // the second one hears of it
		time.Sleep(2 * lookEvery)
		for name, w := range map[string]*Workspaces{"first": o.Workspaces, "second": second} {
			if _, err := w.Send(t.Context(), claybot.Outgoing{ID: "y", Route: claybot.Route{Connector: "slack", ChannelID: "T2/DU1"}, Text: "late"}); !permanent(err) || !strings.Contains(err.Error(), "does not have the app") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// What Slack sends for a workspace without the app has no effect, and while the list of workspaces cannot be
// read, Slack is to send it again.
func TestRequestsOfOthers(t *testing.T) {
	inOrg(t, false, func(t *testing.T, o *org) {
		o.install("T1")
		const form = "application/x-www-form-urlencoded"
		event := `{"type":"event_callback","team_id":%q,"authorizations":[{"team_id":%q}],"event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","user_team":"T1","text":"%s","ts":"%d.000001"}}`
		for i, tt := range []struct {
			name, kind, body string
			posted           int
		}{
			{"a workspace without the app", "application/json", fmt.Sprintf(event, "T9", "T9", "x", 1), 0},
			{"no workspace", "application/json", `{"type":"event_callback","event":{"type":"message"}}`, 0},
			{"of T1", "application/json", fmt.Sprintf(event, "T1", "T1", "x", 2), 1},
			{"in a channel that T9 shares with T1", "application/json", fmt.Sprintf(event, "T9", "T1", "x", 3), 1},
			{"a command of T1", form, "command=%2Fclaybot&text=status&team_id=T1&channel_id=D1&user_id=U1&trigger_id=t1", 1},
			{"a command of T9", form, "command=%2Fclaybot&text=status&team_id=T9&channel_id=D1&user_id=U1&trigger_id=t2", 0},
		} {
			before := len(o.inbox.all())
			code := signed(o.Workspaces, tt.kind, tt.body)
			synctest.Wait()
			if n := len(o.inbox.all()) - before; code != 200 || n != tt.posted {
				t.Errorf("%d %s: %d, posted %d", i, tt.name, code, n)
			}
		}
		if o.Ignored() != 3 {
			t.Errorf("ignored %d", o.Ignored())
		}
		oauth := o.oauth
		broken := files.NewSecrets(t.TempDir())
		if err := broken.Set("slack", []byte("[]")); err != nil {
			t.Fatal(err)
		}
		oauth.Secrets = broken
		w := NewWorkspaces(o.cfg, oauth)
		if code := signed(w, "application/json", fmt.Sprintf(event, "T1", "T1", "x", 4)); code != http.StatusServiceUnavailable {
			t.Errorf("unreadable: %d", code)
		}
		if _, err := w.Send(t.Context(), claybot.Outgoing{Route: claybot.Route{ChannelID: "T1/D1"}}); err == nil || permanent(err) {
			t.Errorf("unreadable: %v", err)
		}
	})
}

// signed sends a request as Slack does, and returns the status of its answer.
func signed(w http.Handler, kind, body string) int {
	r := httptest.NewRequest(http.MethodPost, testHook, strings.NewReader(body))
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", kind)
	r.Header.Set(timestampHeader, stamp)
	r.Header.Set(signatureHeader, slacktest.Signature(signingSecret, stamp, []byte(body)))
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	return rec.Code
}

// What Slack says of an earlier installation, late or again, does not end the present one.
func TestUninstallLate(t *testing.T) {
	for _, what := range []string{`{"type":"app_uninstalled"}`, `{"type":"tokens_revoked","tokens":{"bot":["UBOT"]}}`} {
		inOrg(t, false, func(t *testing.T, o *org) {
			o.install("T1")
			o.install("T2")
			news := func(at time.Time) {
				t.Helper()
				body := fmt.Sprintf(`{"type":"event_callback","team_id":"T2","event_id":"Ev%d","event_time":%d,"event":%s}`, at.Unix(), at.Unix(), what)
				if code := signed(o.Workspaces, "application/json", body); code != http.StatusOK {
					t.Errorf("%s: %d", what, code)
				}
				time.Sleep(time.Minute)
			}
			time.Sleep(time.Minute)
			gone := time.Now()
			o.slacks["T2"].Uninstall()
			time.Sleep(time.Minute)
			o.install("T2")
			news(gone)
			if err := o.answered("T2", "hello"); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if h := o.Health(); h.State != connectors.StateLive || h.Err != "" {
				t.Errorf("%s: %+v", what, h)
			}
			news(time.Now())
			if h := o.Health(); !strings.Contains(h.Err, "has removed the app") {
				t.Errorf("%s now: %+v", what, h)
			}
		})
	}
}
