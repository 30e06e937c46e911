package slack

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/storage/files"
)

// testApp is the app of the tests, below testURL.
const testURL = "https://claybot.test/slack/slack/"

func testOAuth() OAuth {
	return OAuth{ClientID: "1.2", ClientSecret: "canary-secret", ClientIDName: "SLACK_CLIENT_ID", ClientSecretName: "SLACK_CLIENT_SECRET", URL: testURL, Again: "claybot slack install"}
}

// An org is two workspaces and a connector for both, in a bubble.
type org struct {
	*Workspaces
	t      *testing.T
	cfg    Config
	oauth  OAuth
	vault  *vault
	slacks map[string]*slacktest.Server // by team
	door   *connectorstest.Doorway
	inbox  *inbox
	people *people // nil: the inbox knows no chats
	kept   *marks
	logs   *logbook
	stop   func()
}

// inOrg runs a test with an app that T1 and T2 can install, whose tokens Slack may rotate.
func inOrg(t *testing.T, rotates bool, test func(t *testing.T, o *org)) {
	t.Helper()
	inOrgOf(t, rotates, "UBOT", test)
}

// inOrgOf is inOrg where the bot has another id in T2.
func inOrgOf(t *testing.T, rotates bool, second string, test func(t *testing.T, o *org)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &org{
			t: t, oauth: testOAuth(), vault: &vault{Secrets: files.NewSecrets(t.TempDir())}, slacks: make(map[string]*slacktest.Server), door: &connectorstest.Doorway{},
			inbox: newInbox(), kept: &marks{kept: make(map[string]string)}, logs: &logbook{}, stop: func() {},
		}
		var all slacktest.Several
		for _, team := range []string{"T1", "T2"} {
			sc := slacktest.Config{Team: team, BotUser: map[string]string{"T1": "UBOT", "T2": second}[team], BotToken: "xoxb-canary-" + team, AppToken: appToken, Manifest: Manifest, Client: &slacktest.Client{ID: "1.2", Secret: "canary-secret", Redirect: testURL}}
			if rotates {
				sc.Rotation = &slacktest.Rotation{ClientID: "1.2", ClientSecret: "canary-secret", RefreshToken: "xoxe-1-canary-of-" + team, Life: time.Hour}
			}
			o.slacks[team] = slacktest.New(sc)
			o.slacks[team].Push(testHook, signingSecret, o.door)
			all = append(all, o.slacks[team])
		}
		pipe := connectorstest.NewPipe()
		httpd := &http.Server{Handler: all, ReadHeaderTimeout: time.Minute}
		var serving sync.WaitGroup
		serving.Go(func() { _ = httpd.Serve(pipe) }) // ends with the listener
		transport := &http.Transport{DialContext: pipe.Dial}
		o.cfg = Config{
			APIURL: "http://slack.test/api", HTTP: transport, Hook: testHook, SigningSecret: signingSecret, Marks: o.kept,
			Log: slog.New(slog.NewTextHandler(o.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		o.oauth.Secrets = o.vault
		defer func() {
			o.stop()
			for _, s := range o.slacks {
				s.Close()
				if strange := s.Strange(); len(strange) > 0 {
					t.Errorf("calls that Slack does not document: %q", strange)
				}
			}
			transport.CloseIdleConnections()
			_ = httpd.Close() // only the listener's own error
			serving.Wait()
			noCanary(t, "log", o.logs.String())
		}()
		o.start()
		test(t, o)
	})
}

// start runs a connector that knows nothing, in place of the one before.
func (o *org) start() {
	o.stop()
	o.Workspaces = NewWorkspaces(o.cfg, o.oauth)
	o.door.Lead(o.Workspaces)
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan struct{})
	c, h := o.Workspaces, connectors.Handler(o.inbox)
	if o.people != nil {
		h = o.people
	}
	go func() {
		defer close(done)
		_ = c.Run(ctx, h) // its end is the test's
	}()
	o.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// A browser keeps the cookies of one person.
type browser struct{ cookies []*http.Cookie }

// get opens an address of claybot.
func (b *browser) get(o *org, address string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, address, nil)
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	switch {
	case strings.HasPrefix(address, testURL+"install?"):
		o.Install(rec, r)
	case strings.HasPrefix(address, testURL+"callback?"):
		o.Installed(rec, r)
	default:
		o.t.Fatalf("%q is not an address of claybot", address)
	}
	if set := rec.Result().Cookies(); len(set) > 0 {
		b.cookies = set // there is one
	}
	return rec
}

// toSlack opens an install link and allows the app in a workspace, until Slack leads the browser back.
func (b *browser) toSlack(o *org, link, team string) (back string) {
	o.t.Helper()
	rec := b.get(o, link)
	if rec.Code != http.StatusFound {
		o.t.Fatalf("install: %d %s", rec.Code, rec.Body)
	}
	back, err := o.slacks[team].Allow(rec.Header().Get("Location"), true)
	if err != nil {
		o.t.Fatal(err)
	}
	return back
}

func (o *org) link() string {
	link, _ := o.oauth.InstallLink("slack", time.Now())
	return link
}

// install installs the app in a workspace.
func (o *org) install(team string) {
	o.t.Helper()
	b := &browser{}
	if rec := b.get(o, b.toSlack(o, o.link(), team)); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "installed in Test "+team+" ("+team+")") {
		o.t.Fatalf("%s: %d %s", team, rec.Code, rec.Body)
	}
	synctest.Wait()
}

// answered lets a person write in a workspace and sends an answer there.
func (o *org) answered(team, text string) error {
	channel, ts := o.slacks[team].DM("U1", text)
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Hour)
	defer cancel()
	if err := o.slacks[team].WaitAcked(ctx); err != nil {
		return err
	}
	_, err := o.Send(o.t.Context(), claybot.Outgoing{
		ID: "out-" + text, Route: claybot.Route{Connector: "slack", ChannelID: team + "/" + channel, UserID: "U1", ThreadID: ts}, Text: "re: " + text,
	})
	return err
}

// The same ids in two workspaces are two people and two chats, and those of the first workspace are as if it
// were alone. A restart knows both.
func TestWorkspaces(t *testing.T) {
	for _, rotates := range []bool{false, true} {
		inOrg(t, rotates, func(t *testing.T, o *org) {
			if h := o.Health(); h.State != connectors.StateLive || !strings.Contains(h.Err, "no workspace has installed the app; open the link that this prints: claybot slack install") {
				t.Errorf("%+v", h)
			}
			o.install("T1")
			o.install("T2")
			for round := range 2 {
				for _, team := range []string{"T1", "T2"} {
					if err := o.answered(team, fmt.Sprint(team, " ", round)); err != nil {
						t.Fatal(err)
					}
				}
				if h := o.Health(); h.State != connectors.StateLive || h.Err != "" {
					t.Errorf("round %d: %+v", round, h)
				}
				o.start()
			}
			var got []string
			for _, in := range o.inbox.all() {
				got = append(got, in.to.ChannelID+" "+in.to.UserID+" "+in.message.Text)
			}
			want := []string{"T1/DU1 U1 T1 0", "T2/DU1 T2/U1 T2 0", "T1/DU1 U1 T1 1", "T2/DU1 T2/U1 T2 1"}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			for team, s := range o.slacks {
				if all := s.Posted("DU1"); len(all) != 2 || all[0].Text != "re: "+team+" 0" {
					t.Errorf("%s: %+v", team, all)
				}
				if n := s.Refreshed(); rotates && n != 1 {
					t.Errorf("%s: tokens were given %d times", team, n)
				}
			}
		})
	}
}

// Tokens of installs are renewed as those of an operator are, each workspace on its own.
func TestWorkspacesRotate(t *testing.T) {
	inOrg(t, true, func(t *testing.T, o *org) {
		o.install("T1")
		o.install("T2")
		for hour := range 3 {
			time.Sleep(time.Hour)
			for _, team := range []string{"T1", "T2"} {
				if err := o.answered(team, fmt.Sprint(team, " in hour ", hour)); err != nil {
					t.Error(err)
				}
			}
		}
		for team, s := range o.slacks {
			if n := s.Refreshed(); n < 4 || n > 5 { // the first ones are those of the installation
				t.Errorf("%s: tokens were given %d times in three hours", team, n)
			}
		}
	})
}

// Who has no link gets nothing, and a link installs the app once.
//
// Shapes: docs.slack.dev/authentication/installing-with-oauth and …/reference/methods/oauth.v2.access, read 2026-11-30.
func TestInstallLinks(t *testing.T) {
	inOrg(t, false, func(t *testing.T, o *org) {
		link := o.link()
		mine, other := &browser{}, &browser{}
		back := mine.toSlack(o, link, "T1")
		_ = other.toSlack(o, o.link(), "T1")
		changed := func(address, key, value string) string {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			q.Set(key, value)
			u.RawQuery = q.Encode()
			return u.String()
		}
		u, _ := url.Parse(back)
		state := u.Query().Get("state")
		last := "A"
		if strings.HasSuffix(state, "A") {
			last = "Q"
		}
		foreign, _ := OAuth{ClientSecret: "another", URL: testURL}.InstallLink("slack", time.Now())
		elsewhere, _ := o.oauth.InstallLink("sales", time.Now())
		for _, tt := range []struct {
			name, address string
			by            *browser
			status        int
		}{
			{"no code", testURL + "install?code=", mine, 404},
			{"a made-up code", testURL + "install?code=abc", mine, 404},
			{"the link of another app", foreign, mine, 404},
			{"the link of another connector", elsewhere, mine, 404},
			{"no state", testURL + "callback?code=x", mine, 404},
			{"a state that was changed", changed(back, "state", state[:len(state)-1]+last), mine, 404},
			{"a link as a state", changed(back, "state", strings.TrimPrefix(link, testURL+"install?code=")), mine, 404},
			{"no cookie", back, &browser{}, 404},
			{"the cookie of another browser", back, other, 404},
			{"canceled at Slack", changed(changed(back, "code", ""), "error", "access_denied"), mine, 400},
			{"a code that Slack did not give", changed(back, "code", "made-up"), mine, 400},
			{"as it should be", back, mine, 200},
			{"again", back, mine, 404},
			{"another code with the used state", changed(back, "code", "made-up"), mine, 404},
			{"the used link", link, mine, 404},
		} {
			before := o.slacks["T1"].Installs() + o.slacks["T2"].Installs()
			rec := tt.by.get(o, tt.address)
			after := o.slacks["T1"].Installs() + o.slacks["T2"].Installs()
			if rec.Code != tt.status || (after > before) != (tt.status == 200) {
				t.Errorf("%s: %d %q, want %d; %d installs", tt.name, rec.Code, rec.Body, tt.status, after-before)
			}
			noCanary(t, tt.name, rec.Body.String())
		}
		slow := &browser{}
		tooLate := slow.toSlack(o, o.link(), "T2")
		time.Sleep(stateLife)
		if rec := slow.get(o, tooLate); rec.Code != 404 {
			t.Errorf("after ten minutes: %d", rec.Code)
		}
		old, _ := o.oauth.InstallLink("slack", time.Now().Add(-linkLife))
		if rec := slow.get(o, old); rec.Code != 404 {
			t.Errorf("after a day: %d", rec.Code)
		}
		if o.slacks["T2"].Installs() != 0 {
			t.Error("T2 has the app")
		}
	})
}

// An installation for a whole organization is refused in words, and the link stays good.
func TestInstallOrganization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := slacktest.New(slacktest.Config{Manifest: Manifest, Client: &slacktest.Client{ID: "1.2", Secret: "canary-secret", Redirect: testURL, Organization: true}})
		defer server.Close()
		oauth := testOAuth()
		oauth.Secrets = files.NewSecrets(t.TempDir())
		door := &connectorstest.Doorway{}
		door.Lead(server)
		o := &org{t: t, oauth: oauth, slacks: map[string]*slacktest.Server{"T1": server}, Workspaces: NewWorkspaces(Config{APIURL: "http://slack.test/api", HTTP: door, Hook: testHook, SigningSecret: signingSecret}, oauth)}
		b, link := &browser{}, o.link()
		if rec := b.get(o, b.toSlack(o, link, "T1")); rec.Code != 400 || !strings.Contains(rec.Body.String(), "cannot be installed for a whole organization") {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if rec := b.get(o, link); rec.Code != http.StatusFound {
			t.Errorf("the link again: %d", rec.Code)
		}
	})
}
