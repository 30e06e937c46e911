package webchat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	for name, why := range map[string][]string{
		"gives readers the messages of the outbox itself, which a send only announces": {
			"texts in order, each once", "answers in a group", "edits replace, and repeat harmlessly", "edit of a deleted message",
			"429 silences what it names, and nothing else", "lost answer is ambiguous", "edits are never ambiguous",
			"unreachable platform is not ambiguous", "refused content is permanent, the route lives", "dead route is named", "answers to commands reach their person alone",
			"unknown route is dead", "drafts fit a message", "Split keeps the text whole", "files go out",
			"lost answer to a file is ambiguous", "429 and dead routes of files", "names and captions of any length are accepted",
		},
		"has conversations of one user only":                                  {"groups need a mention", "earlier messages are read"},
		"shows no reactions":                                                  {"reactions go on messages", "marks replace each other", "reactions of people come in"},
		"stores files before the message that names them":                     {"files come as references"},
		"takes answers by the API of questions, outside of this package":      {"button press is an answer", "full store loses no button press", "button presses carry who pressed", "questions and offers of any size are accepted"},
		"is served by claybot itself, and has the status of claybot's server": {"status follows the platform", "a platform that hangs shows within 30 s", "revoked token stops it with a cause"},
		"gets requests of known form only; others are refused":                {"unknown events are acknowledged"},
	} {
		for _, check := range why {
			lacks[check] = name
		}
	}
	connectorstest.Run(t, connectorstest.Harness{
		Name: "web", Open: openSuite, Lacks: lacks,
		Unstorable: &storage.Fault{Class: storage.ClassMessage, Err: errors.New("no id")},
	})
}

// A browser is the client: it sends the messages of each user in order, each again every
// second until it is taken or refused for good.
type browser struct {
	sync.Mutex
	handler http.Handler // of the present chat
	memory  *memory
	waiting map[string][]click
	news    map[string]chan struct{} // by user
	done    chan struct{}
	sending sync.WaitGroup
	sent    int
	writer  string // of the newest message
}

// A click is a request of the page.
type click struct{ method, path, body string }

// write queues the body of a message.
func (p *browser) write(user, body string) {
	p.queue(user, click{http.MethodPost, "/messages", body})
}

// queue queues a request.
func (p *browser) queue(user string, c click) {
	p.Lock()
	defer p.Unlock()
	p.writer = user
	p.waiting[user] = append(p.waiting[user], c)
	if p.news[user] == nil {
		news := make(chan struct{}, 1)
		p.news[user] = news
		p.sending.Go(func() { p.send(user, news) })
	}
	select {
	case p.news[user] <- struct{}{}:
	default:
	}
}

func (p *browser) next(user string) (c click, h http.Handler) {
	p.Lock()
	defer p.Unlock()
	if len(p.waiting[user]) > 0 {
		c = p.waiting[user][0]
	}
	return c, p.handler
}

func (p *browser) send(user string, news chan struct{}) {
	for {
		c, h := p.next(user)
		pause := time.Second
		switch {
		case c.method == "":
			select {
			case <-news:
			case <-p.done:
				return
			}
			continue
		case h != nil:
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			r.Header.Set("X-Login", user)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code < http.StatusInternalServerError {
				p.Lock()
				p.waiting[user] = p.waiting[user][1:]
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

func (p *browser) unacked() (n int) {
	p.Lock()
	defer p.Unlock()
	for _, waiting := range p.waiting {
		n += len(waiting)
	}
	return n
}

// A remembered chat is one whose stored messages can be read.
type remembered struct {
	*Chat
	memory *memory
}

func (c remembered) Run(ctx context.Context, h connectors.Handler) error {
	return c.Chat.Run(ctx, remembering{h, c.memory})
}

type remembering struct {
	connectors.Handler
	memory *memory
}

func (h remembering) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	err := h.Handler.Post(ctx, to, m)
	if err == nil {
		err = h.memory.Post(ctx, to, m)
	}
	return err
}

// openSuite is a web page with users in the terms of the suite.
func openSuite(t *testing.T) *connectorstest.Platform {
	p := &browser{waiting: make(map[string][]click), news: make(map[string]chan struct{}), done: make(chan struct{}), memory: &memory{}}
	user := func(n int) string { return fmt.Sprintf("user%d", n) }
	return &connectorstest.Platform{
		Connector: func() connectors.Connector {
			c := remembered{New(Config{}), p.memory}
			p.Lock()
			defer p.Unlock()
			p.handler = c.Handler(p.memory, p.memory, login)
			return c
		},
		Close: func() {
			close(p.done)
			p.sending.Wait()
		},
		User: user,
		Route: func(_ connectorstest.Chat, n int) claybot.Route {
			return claybot.Route{Connector: "web", ChannelID: home, UserID: user(n)}
		},
		Write: func(w connectorstest.Written) {
			p.sent++
			body, err := json.Marshal(map[string]string{"id": fmt.Sprintf("m%d", p.sent), "text": w.Text})
			if err != nil {
				t.Error(err)
			}
			p.write(user(w.User), string(body))
		},
		Edit: func(text string) {
			p.queue(p.writer, click{http.MethodPatch, fmt.Sprintf("/messages/m%d", p.sent), `{"id":"e1","text":"` + text + `"}`})
		},
		Unsend:  func() { p.queue(p.writer, click{http.MethodDelete, fmt.Sprintf("/messages/m%d", p.sent), ""}) },
		Unacked: p.unacked, Redeliver: 2 * time.Second,
		Malformed: func() {
			for _, body := range []string{"{", `{"text":1}`, `{"text":"hello","future":1}`, `[]`} {
				p.write(user(1), body)
			}
		},
	}
}
