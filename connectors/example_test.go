package connectors_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A Pager connects to a platform: GET /next?after=ID forgets up to ID and waits for one more message; POST /send takes a text.
type Pager struct {
	URL   string
	pulse connectors.Pulse
}

func (p *Pager) Name() string              { return "pager" }
func (p *Pager) Health() connectors.Health { return p.pulse.Health() }

func (p *Pager) Run(ctx context.Context, h connectors.Handler) error {
	for after := ""; ; {
		var page struct{ ID, Chat, User, Text string }
		if err := p.call(ctx, http.MethodGet, "/next?after="+url.QueryEscape(after), nil, &page); err != nil {
			return cmp.Or(context.Cause(ctx), err) // the supervisor calls Run again
		}
		p.pulse.OK() // a completed poll
		if page.ID == "" {
			continue
		}
		m := claybot.AgentMessage{ID: claybot.MessageID("pager/" + page.ID), Type: claybot.MessageUser, Text: page.Text, FirstHand: true, At: claybot.Now()}
		if m, ours := connectors.Interpret(m, "/", ""); ours {
			if err := h.Post(ctx, claybot.User(p.Name(), page.Chat, page.User), m); err != nil {
				return err // not stored: the platform must keep it
			}
		}
		after = page.ID // only now may the platform forget it
	}
}

func (p *Pager) Send(ctx context.Context, o claybot.Outgoing) (string, error) {
	var sent struct{ ID string }
	err := p.call(ctx, http.MethodPost, "/send", map[string]string{"chat": o.Route.ChannelID, "text": o.Text}, &sent)
	if err == nil && sent.ID == "" {
		err = &connectors.AmbiguousError{Err: errors.New("the answer names no message")}
	}
	return sent.ID, err
}

func (p *Pager) Split(text string) []string {
	return connectors.Split(text, 160, utf8.RuneCountInString)
}

func (p *Pager) call(ctx context.Context, method, path string, in, out any) error {
	body, _ := json.Marshal(in) // strings always encode
	req, err := http.NewRequestWithContext(ctx, method, p.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &connectors.AmbiguousError{Err: err} // maybe it arrived: claybot does not send it again unasked
	}
	defer resp.Body.Close()
	switch err = errors.New(resp.Status); {
	case resp.StatusCode == http.StatusTooManyRequests:
		return &connectors.RetryError{After: time.Minute, Err: err}
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return &connectors.PermanentError{Err: err}
	case resp.StatusCode < 300:
		if err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(out); err == nil {
			return nil
		}
	}
	return &connectors.AmbiguousError{Err: err} // also where the answer was cut: the message may be there
}

// The whole of a connector, at work with a platform that has one message.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /next", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("after") == "7" { // confirmed: the platform forgets it
			cancel()
			return
		}
		fmt.Fprint(w, `{"ID":"7","Chat":"c1","User":"u1","Text":"hello"}`)
	})
	mux.HandleFunc("POST /send", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		fmt.Printf("sent %s\n", text)
		fmt.Fprint(w, `{"ID":"8"}`)
	})
	platform := httptest.NewServer(mux)
	defer platform.Close()

	pager := &Pager{URL: platform.URL}
	err := pager.Run(ctx, echo{pager})
	fmt.Println(errors.Is(err, context.Canceled), pager.Health().State)
	// Output:
	// {"type":"user","connector":"pager","channelId":"c1","userId":"u1"} pager/7 hello
	// sent {"chat":"c1","text":"you said hello"}
	// true live
}

// echo stands for the agent system: it takes a message in and answers it.
type echo struct{ to connectors.Sender }

func (e echo) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	who, err := json.Marshal(to)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s %s\n", who, m.ID, m.Text)
	_, err = e.to.Send(ctx, claybot.Outgoing{ID: "out", Route: to.Route(), Text: "you said " + m.Text})
	return err
}

func (echo) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

func (echo) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

var (
	_ connectors.Connector = (*Pager)(nil)
	_ connectors.Sender    = (*Pager)(nil)
)

func (e echo) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, nil // it asks nothing
}
