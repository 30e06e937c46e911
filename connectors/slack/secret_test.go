package slack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Whatever goes wrong, no error shows a token or a socket address.
func TestErrorsKeepSecrets(t *testing.T) {
	answer := func(body string) transport {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
	}
	unreachable := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("unreachable") }
	for name, rt := range map[string]transport{
		"address that is none":         answer(`{"ok":true,"url":"ws://host:port/?ticket=1\u007f"}`),
		"address of another scheme":    answer(`{"ok":true,"url":"ftp://host/?ticket=1"}`),
		"address that does not answer": answer(`{"ok":true,"url":"ws://host/?ticket=1"}`),
		"no address":                   answer(`{"ok":true}`),
		"code that quotes the token":   answer(`{"ok":false,"error":"XOXB xoxb-CANARY ` + "\n" + `"}`),
		"no JSON":                      answer(botToken + " " + appToken),
		"transport that quotes them": func(r *http.Request) (*http.Response, error) {
			return nil, errors.New("cannot send " + botToken + " or " + appToken)
		},
		"request that never ends": func(r *http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded },
	} {
		c := New(Config{BotToken: botToken, AppToken: appToken, HTTP: rt, Dial: unreachable})
		_, err := c.open(t.Context())
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		noCanary(t, name, err.Error())
		if _, err := c.Send(t.Context(), outgoing("C1", "", "x")); err == nil {
			t.Errorf("%s: sent", name)
		} else {
			noCanary(t, name, err.Error())
		}
		o := outgoing("C1", "", "x")
		o.Tried = 0
		if _, _, err := c.Find(t.Context(), o); err == nil {
			t.Errorf("%s: looked up", name)
		} else {
			noCanary(t, name, err.Error())
		}
	}
}

// The defaults work over a real network too.
func TestOverLoopback(t *testing.T) {
	server := slacktest.New(slacktest.Config{Manifest: Manifest, BotToken: botToken, AppToken: appToken})
	httpd := httptest.NewServer(server)
	defer httpd.Close()
	defer server.Close()
	c := New(Config{Name: "work", BotToken: botToken, AppToken: appToken, APIURL: httpd.URL + "/api/"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	running, stop := context.WithCancel(ctx)
	box := newInbox()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running, box) }()
	defer func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
		cancel()
	}()
	channel, ts := server.DM("U1", "hello")
	if err := server.WaitAcked(ctx); err != nil {
		t.Fatal(err)
	}
	got := box.all()
	if len(got) != 1 || got[0].to.Connector != "work" {
		t.Fatalf("received %+v", got)
	}
	if _, err := c.Send(ctx, outgoing(channel, ts, "hello back")); err != nil {
		t.Fatal(err)
	}
	if m, err := server.WaitPosted(ctx, channel, func(m slacktest.Message) bool { return m.Text == "hello back" }); err != nil || m.Thread != ts {
		t.Errorf("%+v, %v", m, err)
	}
}

// The work on one message besides network and store.
func BenchmarkRead(b *testing.B) {
	data := []byte(`{"envelope_id":"e","type":"events_api","accepts_response_payload":false,"payload":{"token":"x","team_id":"T1","api_app_id":"A1","event":{"type":"message","channel":"C1","channel_type":"channel","user":"U1","text":"<@UBOT> what do you think of <https://example.com|this> &amp; that?","ts":"1700000000.000100","team":"T1","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"what do you think"}]}]}]},"type":"event_callback","event_id":"Ev1","event_time":1700000000}}`)
	b.ReportAllocs()
	for b.Loop() {
		var f frame
		if err := connectors.Decode(data, &f); err != nil {
			b.Fatal(err)
		}
		if _, v := read("slack", me, f); v != message {
			b.Fatal(v)
		}
	}
}
