package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// slackInstalls starts two workspaces, T1 and, as the instance second, T2, which can install one app whose
// tokens Slack rotates.
func (r *rig) slackInstalls(ts *testscript.TestScript) {
	const id, secret = "1234.5678", "fake-client-secret"
	var all slacktest.Several
	for _, team := range []string{"T1", "T2"} {
		s := slacktest.New(slacktest.Config{
			Team: team, BotToken: "xoxb-test-" + team, AppToken: "xapp-test", Manifest: slack.Manifest,
			Client:   &slacktest.Client{ID: id, Secret: secret, Redirect: "http://127.0.0.1:"},
			Rotation: &slacktest.Rotation{ClientID: id, ClientSecret: secret, RefreshToken: "xoxe-1-test-" + team},
		})
		r.stops = append(r.stops, s.Close)
		all = append(all, s)
	}
	r.slack, r.slacks["second"] = all[0], all[1]
	address, stop, err := listenLocal(all)
	ts.Check(err)
	r.stops = append(r.stops, stop)
	for name, value := range map[string]string{
		"SLACK_CLIENT_ID": id, "SLACK_CLIENT_SECRET": secret, "SLACK_SIGNING_SECRET": "fake-signing-secret", "SLACK_API_URL": address + "/api/",
	} {
		ts.Setenv(name, value)
	}
}

// slackInstall is a browser that opens an install link, allows the app, and is led back. The last answer must have a
// status; "lost" is one that never comes, after Slack gave the tokens.
func (r *rig) slackInstall(ts *testscript.TestScript, want, link string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.stops = append(r.stops, cancel)
	open := func(address string, cookies []*http.Cookie) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		for _, c := range cookies {
			req.AddCookie(c)
		}
		return new(http.Transport).RoundTrip(req) // follows no redirect
	}
	resp, err := open(link, nil)
	ts.Check(err)
	said, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	if resp.StatusCode != http.StatusFound {
		if strconv.Itoa(resp.StatusCode) != want {
			ts.Fatalf("the link answers %d %s", resp.StatusCode, said)
		}
		return
	}
	back, err := r.slack.Allow(resp.Header.Get("Location"), true)
	ts.Check(err)
	if want == "lost" {
		n := r.slack.Installs()
		r.slack.Fail("oauth.v2.access", slacktest.Fault{Hang: true})
		go func() {
			if resp, err := open(back, resp.Cookies()); err == nil {
				_ = resp.Body.Close() // the daemon is killed before
			}
		}()
		until(ts, func() (bool, string) { return r.slack.Installs() > n, "Slack gave no tokens" })
		return
	}
	resp, err = open(back, resp.Cookies())
	ts.Check(err)
	defer resp.Body.Close()
	said, err = io.ReadAll(resp.Body)
	ts.Check(err)
	_, err = fmt.Fprint(ts.Stdout(), string(said))
	ts.Check(err)
	if strconv.Itoa(resp.StatusCode) != want {
		ts.Fatalf("answered %d %s, want %s", resp.StatusCode, said, want)
	}
}
