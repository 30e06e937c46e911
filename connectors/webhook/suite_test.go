package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/storage"
)

func TestSuite(t *testing.T) {
	lacks := make(map[string]string)
	for why, checks := range map[string][]string{
		"posts what a program wrote, which is never first hand":                  {"sender and context"},
		"has one user, itself, for all channels":                                 {"order in a chat"},
		"has no groups":                                                          {"groups need a mention", "answers in a group", "earlier messages are read"},
		"takes every event whose signature is right":                             {"unknown events are acknowledged"},
		"has no edits and deletions":                                             {"edits name the message", "deletions name the message"},
		"posts each message as a new one, and complete":                          {"edits replace, and repeat harmlessly", "edit of a deleted message", "edits are never ambiguous", "drafts fit a message"},
		"has one callback for all channels, which a 429 silences":                {"429 silences what it names, and nothing else"},
		"sends every channel to its callback":                                    {"unknown route is dead"},
		"has no commands":                                                        {"answers to commands reach their person alone"},
		"carries no files":                                                       {"files come as references", "files go out", "lost answer to a file is ambiguous", "429 and dead routes of files", "names and captions of any length are accepted"},
		"has no reactions, buttons and typing signs":                             {"reactions go on messages", "marks replace each other", "reactions of people come in", "button press is an answer", "full store loses no button press", "button presses carry who pressed", "questions and offers of any size are accepted", "typing sign"},
		"is served by claybot itself, and has the status of claybot's server":    {"status follows the platform", "a platform that hangs shows within 30 s"},
		"has a secret that only the configuration changes, and no token to lose": {"revoked token stops it with a cause"},
	} {
		for _, check := range checks {
			lacks[check] = why
		}
	}
	connectorstest.Run(t, connectorstest.Harness{
		Name: "webhook", Open: openSuite, Lacks: lacks,
		Unstorable: &storage.Fault{Class: storage.ClassMessage, Err: errors.New("no id")},
	})
}

// A program sends the events of each channel in order, each again every second until it is
// taken or refused for good, and is the callback.
type program struct {
	sync.Mutex
	scheme  scheme
	signer  scheme       // of callbacks
	hooks   http.Handler // of the present connector
	waiting map[string][]string
	news    map[string]chan struct{} // by channel
	done    chan struct{}
	sending sync.WaitGroup
	sent    int

	shown map[string][]string
	fates map[string]string // of the next request, by channel
	calls int
}

// write queues an event.
func (p *program) write(channel, body string) {
	p.Lock()
	defer p.Unlock()
	p.waiting[channel] = append(p.waiting[channel], body)
	if p.news[channel] == nil {
		news := make(chan struct{}, 1)
		p.news[channel] = news
		p.sending.Go(func() { p.send(channel, news) })
	}
	select {
	case p.news[channel] <- struct{}{}:
	default:
	}
}

func (p *program) next(channel string) (body string, h http.Handler) {
	p.Lock()
	defer p.Unlock()
	if len(p.waiting[channel]) > 0 {
		body = p.waiting[channel][0]
	}
	return body, p.hooks
}

func (p *program) send(channel string, news chan struct{}) {
	for {
		body, h := p.next(channel)
		pause := time.Second
		switch {
		case body == "":
			select {
			case <-news:
			case <-p.done:
				return
			}
			continue
		case h != nil:
			r := httptest.NewRequest(http.MethodPost, "/hooks/ci", strings.NewReader(body))
			r.SetPathValue("name", "ci")
			var id struct{ ID string }
			_ = json.Unmarshal([]byte(body), &id) // of what is no JSON, any
			prove(p.scheme, r.Header, "msg_"+id.ID, []byte(body), time.Now())
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code < http.StatusInternalServerError {
				p.Lock()
				p.waiting[channel] = p.waiting[channel][1:]
				p.Unlock()
				pause = 0
			}
		}
		select {
		case <-time.After(pause):
		case <-p.done:
			return
		}
	}
}

func (p *program) unacked() (n int) {
	p.Lock()
	defer p.Unlock()
	for _, waiting := range p.waiting {
		n += len(waiting)
	}
	return n
}

// fate sets what becomes of the next request for a channel.
func (p *program) fate(what string) func(connectorstest.Chat) {
	return func(c connectorstest.Chat) {
		p.Lock()
		defer p.Unlock()
		p.fates[channelOf(c)] = what
	}
}

// RoundTrip implements http.RoundTripper, as the callback.
func (p *program) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	var got reply
	if err != nil || p.signer.verify(r.Header, body, time.Now()) != nil || json.Unmarshal(body, &got) != nil {
		return nil, errors.New("a request that the scheme does not allow")
	}
	p.Lock()
	defer p.Unlock()
	fate := p.fates[got.Channel]
	if p.calls++; fate != "gone" {
		delete(p.fates, got.Channel)
	}
	if fate == "unreached" {
		return nil, errors.New("no route to host")
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.WroteHeaderField("Content-Type", nil)
	}
	if fate == "" || fate == "lost" {
		if got.Resent {
			got.Text = "again: " + got.Text
		}
		p.shown[got.Channel] = append(p.shown[got.Channel], got.Text)
	}
	status := map[string]int{"": http.StatusNoContent, "refused": http.StatusBadRequest, "gone": http.StatusGone}[fate]
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: status, Header: make(http.Header), Body: http.NoBody, Request: r}, nil
}

func channelOf(c connectorstest.Chat) string { return fmt.Sprintf("channel-%v-%d", c.Group, c.N) }

// openSuite is a program with channels in the terms of the suite.
func openSuite(t *testing.T) *connectorstest.Platform {
	p := &program{
		scheme: made(t, Config{Scheme: Standard, Secret: fakeSecret}), signer: made(t, Config{Scheme: Standard, Secret: callbackSecret}), waiting: make(map[string][]string), news: make(map[string]chan struct{}),
		done: make(chan struct{}), shown: make(map[string][]string), fates: make(map[string]string),
	}
	return &connectorstest.Platform{
		Connector: func() connectors.Connector {
			c := New(Config{
				Name: "ci", Scheme: Standard, Secret: fakeSecret, Callback: "http://callback.test/private-path", CallbackSecret: callbackSecret, HTTP: p,
				Fill: func(d Delivery) (channel, text string, err error) {
					v, _ := d.Payload.(map[string]any)
					return fmt.Sprint(v["channel"]), fmt.Sprint(v["text"]), nil
				},
			})
			p.Lock()
			defer p.Unlock()
			p.hooks = only(c)
			return c
		},
		Close: func() {
			close(p.done)
			p.sending.Wait()
		},
		Secrets: []string{fakeSecret[6:], callbackSecret[6:], "private-path"},
		User:    func(int) string { return "ci" },
		Route: func(c connectorstest.Chat, _ int) claybot.Route {
			return claybot.Route{Connector: "ci", ChannelID: channelOf(c), UserID: "ci"}
		},
		Write: func(w connectorstest.Written) {
			p.sent++
			body, err := json.Marshal(map[string]string{"id": fmt.Sprint(p.sent), "channel": channelOf(w.Chat), "text": w.Text})
			if err != nil {
				t.Error(err)
			}
			p.write(channelOf(w.Chat), string(body))
		},
		Unacked: p.unacked, Redeliver: 2 * time.Second,
		Malformed: func() {
			for _, body := range []string{" ", "\xff"} {
				p.write(channelOf(connectorstest.Ann), body)
			}
		},
		Shown: func(c connectorstest.Chat) []string {
			p.Lock()
			defer p.Unlock()
			return append([]string{}, p.shown[channelOf(c)]...)
		},
		Sends: func() int { return p.calls },
		Lose:  p.fate("lost"), Drop: p.fate("dropped"), Unreach: p.fate("unreached"), Refuse: p.fate("refused"), Kill: p.fate("gone"),
	}
}
