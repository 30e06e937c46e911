package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/client"
)

// The webhook of the crash rig. The secrets are obvious fakes.
const (
	hookName       = "events"
	hookSecret     = "fake-secret-of-the-rig"
	hookID         = "X-Event-Id"
	callbackSecret = "whsec_bm90LWEtc2VjcmV0LWF0LWFsbA=="
)

// againAfter is the pause of a client before it repeats a request.
const againAfter = 20 * time.Millisecond

// clients are what reaches the daemon by itself, with conversations of their own: programs
// that send events to a webhook, and pages.
type clients struct {
	dir   string
	hooks string // the address of the daemon's HTTP server
	// callback is where answers of the webhook go.
	callback string
	inbox    *callbacks
	chats    []*chat
	stop     func()
}

// openClients adds a webhook to the configuration in dir and starts n programs and n pages. With
// pushed, the platforms that can send their updates do.
func openClients(ctx context.Context, dir string, n int, pushed bool) (*clients, error) {
	inbox := &callbacks{texts: make(map[string][]string), seen: make(map[string]bool)}
	url, stopInbox, err := listen(inbox)
	if err != nil {
		return nil, err
	}
	hooks, free, err := listen(http.NotFoundHandler())
	if err != nil {
		stopInbox()
		return nil, err
	}
	free()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	c := &clients{dir: dir, hooks: hooks, callback: url, inbox: inbox, stop: func() { cancel(); wg.Wait(); stopInbox() }}
	if err := c.configure(url, pushed); err != nil {
		c.stop()
		return nil, err
	}
	for i := range n {
		name := fmt.Sprint("c", i)
		events, messages := newOutgoing(ctx, &wg, c.event), newOutgoing(ctx, &wg, c.message)
		page := &viewer{clients: c, conversation: name}
		wg.Go(func() { page.watch(ctx) })
		c.chats = append(c.chats, &chat{
			name: "webhook " + name, plain: true, // a subagent of an event needs an approval
			replies: func() []string { return inbox.of(name) },
			say: func(text string) claybot.MessageID {
				return claybot.MessageID(hookName + "/" + events.add(map[string]string{"channel": name, "text": text}))
			},
		}, &chat{
			name: "page " + name, replies: page.replies,
			say: func(text string) claybot.MessageID {
				return claybot.MessageID("web/" + name + "/" + messages.add(map[string]string{"conversation": name, "text": text}))
			},
		})
	}
	return c, nil
}

func (c *clients) configure(callback string, pushed bool) error {
	f, err := os.OpenFile(filepath.Join(c.dir, "claybot.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, `connectors:
  %s:
    type: webhook
    scheme: bearer
    secret: env:HOOK_SECRET
    id_header: %s
    channel: "{{ trigger.payload.channel }}"
    prompt: "{{ trigger.payload.text }}"
    callback: %s
    callback_secret: env:CALLBACK_SECRET
`, hookName, hookID, callback)
	if err == nil && pushed {
		_, err = fmt.Fprintf(f, "http: {public_url: %q}\ntelegram: {receive: webhook}\nslack: {receive: http}\n", c.hooks)
	}
	return err
}

// env lets the daemon serve its webhooks.
func (c *clients) env() []string {
	return []string{"CLAYBOT_HTTP_ADDR=" + strings.TrimPrefix(c.hooks, "http://"), "SLACK_SIGNING_SECRET=" + hookSecret, "HOOK_SECRET=" + hookSecret, "CALLBACK_SECRET=" + callbackSecret}
}

// event sends an event to the webhook.
func (c *clients) event(ctx context.Context, id string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.hooks+"/hooks/"+hookName, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+hookSecret)
	req.Header.Set(hookID, id)
	return http.DefaultClient.Do(req)
}

// message sends what a person wrote on the page; the id stands in the body.
func (c *clients) message(ctx context.Context, _ string, body []byte) (*http.Response, error) {
	return c.page(ctx, http.MethodPost, "messages", body)
}

// page makes a request of the page over the daemon's socket.
func (c *clients) page(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	tr, err := client.Transport(filepath.Join(c.dir, "data"))
	if err != nil {
		return nil, err
	}
	tr.DisableKeepAlives = true
	req, err := http.NewRequestWithContext(ctx, method, "http://claybot/chat/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return (&http.Client{Transport: tr}).Do(req)
}

// outgoing are the messages of one client, each sent until the daemon says that it has it, one after
// the other.
type outgoing struct {
	send  func(ctx context.Context, id string, body []byte) (*http.Response, error)
	queue chan sending
}

type sending struct {
	id   string
	body []byte
}

func newOutgoing(ctx context.Context, wg *sync.WaitGroup, send func(ctx context.Context, id string, body []byte) (*http.Response, error)) *outgoing {
	o := &outgoing{send: send, queue: make(chan sending, 1<<20)}
	wg.Go(func() {
		for {
			select {
			case s := <-o.queue:
				for !o.sent(ctx, s) && pause(ctx, againAfter) {
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return o
}

// add sends fields and an id, which it returns.
func (o *outgoing) add(fields map[string]string) string {
	id := rand.Text()
	fields["id"] = id
	body, _ := json.Marshal(fields) // strings always marshal
	o.queue <- sending{id, body}
	return id
}

func (o *outgoing) sent(ctx context.Context, s sending) bool {
	resp, err := o.send(ctx, s.id, s.body)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusAccepted
}

// callbacks take what a webhook answers. They know a repeat by its id.
type callbacks struct {
	mu    sync.Mutex
	texts map[string][]string // by channel
	seen  map[string]bool
}

func (c *callbacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var got struct{ Channel, Text string }
	if err != nil || json.Unmarshal(b, &got) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := r.Header.Get("webhook-id"); !c.seen[id] {
		c.seen[id] = true
		c.texts[got.Channel] = append(c.texts[got.Channel], got.Text)
	}
}

func (c *callbacks) of(channel string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.texts[channel]...)
}

// A viewer is a page that follows a conversation, and goes on where its stream broke off.
type viewer struct {
	clients      *clients
	conversation string
	after        string

	mu    sync.Mutex
	texts []string
}

func (v *viewer) replies() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.texts...)
}

func (v *viewer) watch(ctx context.Context) {
	for v.read(ctx); pause(ctx, againAfter); {
		v.read(ctx)
	}
}

// read takes the messages of one stream.
func (v *viewer) read(ctx context.Context) {
	resp, err := v.clients.page(ctx, http.MethodGet, "stream?conversation="+v.conversation+"&after="+v.after, nil)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	var id, event string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			var said struct{ Text string }
			if event == "message" && json.Unmarshal([]byte(value), &said) == nil {
				v.mu.Lock()
				v.texts = append(v.texts, said.Text)
				v.mu.Unlock()
				v.after = id
			}
		}
	}
}
