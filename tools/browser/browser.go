// Package browser is the tools with which an agent uses a browser: it opens pages,
// reads them, clicks, types, and looks at them.
//
// The browser stays open between calls: one for each key, a few at a time, until
// it has not been used for a while. What it shows is untrusted content, so every
// page taints the run. Where it runs and what it reaches is a matter of the device;
// these tools see to it that the rules for hosts are asked first.
//
// Only cmd imports it.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// The defaults of a Config.
const (
	DefaultIdle = 5 * time.Minute
	DefaultMost = 4
)

// The limits of calls. An opening may have to make a workspace first.
const (
	openLimit = 15 * time.Minute
	callLimit = 2 * time.Minute
	maxURL    = 8 << 10  // bytes
	maxTyped  = 16 << 10 // bytes
)

// Config says what the tools work with.
type Config struct {
	// Open opens the device of an agent for a Spec that has the URL alone; which
	// Hosts it reaches is Open's to say. The device shows pages, so it can navigate.
	Open func(ctx context.Context, env tools.Env, s devices.Spec) (devices.Device, error)
	// SaveFile keeps a picture for the agent. nil: there is no browser_screenshot.
	SaveFile func(ctx context.Context, env tools.Env, name, mimeType string, content []byte) (claybot.FileReference, error)
	// Listed reports whether an agent may open an address without asking; nil: none.
	Listed func(env tools.Env, address string) bool
	// Key says whose browser a call uses; nil: each agent has one. Agents with the
	// same key share pages and logins.
	Key func(env tools.Env) string
	// Idle is after how long without a call a browser is closed, Most how many are
	// open at a time; 0 is the default.
	Idle time.Duration
	Most int
	Log  *slog.Logger // nil discards
}

// New makes the browsers of the configuration. None is open before a call asks.
func New(c Config) *Browsers {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Key == nil {
		c.Key = func(env tools.Env) string { return string(env.Agent.ID) }
	}
	if c.Listed == nil {
		c.Listed = func(tools.Env, string) bool { return false }
	}
	if c.Idle <= 0 {
		c.Idle = DefaultIdle
	}
	if c.Most <= 0 {
		c.Most = DefaultMost
	}
	return &Browsers{cfg: c, sessions: make(map[string]*session)}
}

// Tools are the tools on the browsers.
func (b *Browsers) Tools() []tools.Tool {
	all := []tools.Tool{b.openTool(), b.readTool(), b.clickTool(), b.typeTool()}
	if b.cfg.SaveFile != nil {
		all = append(all, b.screenshotTool())
	}
	return append(all, b.closeTool())
}

var scopes = []string{tools.ScopeBrowser}

func spec(name string, effect tools.Effect, class tools.Class, description string) tools.Spec {
	return tools.Spec{
		Tool:   llm.Tool{Name: name, Description: description},
		Effect: effect, Class: class, Timeout: callLimit, Scopes: scopes,
	}
}

func (b *Browsers) openTool() tools.Tool {
	type input struct {
		URL string `json:"url" jsonschema:"the whole address, such as https://example.com/, or file:NAME for a file of your workspace"`
	}
	s := tools.Spec{
		Tool: llm.Tool{
			Name: "browser_open",
			Description: "Opens a page in your browser and returns its text with what can be clicked and filled in, numbered. " +
				"The browser stays open, with what you typed and its cookies, until you close it or do not use it for some minutes. " +
				"It reaches what your workspace reaches: its files (file:NAME), and the hosts that the operator allows. To read a page without clicking, fetch_url is quicker.",
		},
		Effect: tools.Once, Class: tools.Outward, Timeout: openLimit, Scopes: scopes,
		Subject: func(args json.RawMessage) string {
			var in input
			_ = json.Unmarshal(args, &in) // no address: no subject
			return subject(strings.TrimSpace(in.URL))
		},
		Listed: func(env tools.Env, args json.RawMessage) bool {
			var in input
			return json.Unmarshal(args, &in) == nil && b.listed(env, strings.TrimSpace(in.URL))
		},
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		address := strings.TrimSpace(in.URL)
		if address == "" || len(address) > maxURL {
			return tools.Result{}, invalid("field url: want an address of at most %d bytes", maxURL)
		}
		return b.with(ctx, env, address, func(s *session) (tools.Result, error) {
			err := s.open(ctx, address)
			return s.shown(ctx, fmt.Sprintf(texts.DidOpenPage, subject(address)), err)
		})
	})
}

func (b *Browsers) readTool() tools.Tool {
	type input struct{}
	s := spec("browser_read", tools.ReadOnly, tools.Inside,
		"Returns the text of the page that is open in your browser, longer than browser_open does, with what can be clicked and filled in, numbered.")
	return tools.New(s, func(ctx context.Context, env tools.Env, _ input) (tools.Result, error) {
		return b.with(ctx, env, "", func(s *session) (tools.Result, error) { return s.read(ctx) })
	})
}

func (b *Browsers) clickTool() tools.Tool {
	type input struct {
		Action int `json:"action" jsonschema:"the number of what is clicked, as the page was shown last; 0 goes back to the page before"`
	}
	s := spec("browser_click", tools.Once, tools.Outward,
		"Clicks a link, button or other element of the page that is open in your browser, and returns the page that comes of it. Numbers are those of the last page that was shown.")
	s.SubjectIn = func(env tools.Env, args json.RawMessage) string {
		var in input
		if json.Unmarshal(args, &in) != nil {
			return ""
		}
		return b.about(env, in.Action)
	}
	s.Listed = func(env tools.Env, args json.RawMessage) bool {
		var in input
		return json.Unmarshal(args, &in) == nil && b.listedAction(env, in.Action)
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		return b.with(ctx, env, "", func(s *session) (tools.Result, error) { return s.click(ctx, in.Action) })
	})
}

func (b *Browsers) typeTool() tools.Tool {
	type input struct {
		Field  int    `json:"field" jsonschema:"the number of the field, as the page was shown last"`
		Text   string `json:"text" jsonschema:"what stands in it then; of a choice, one of its options"`
		Submit bool   `json:"submit,omitempty" jsonschema:"true sends the form afterwards, as the key Enter does"`
	}
	s := spec("browser_type", tools.Once, tools.Outward,
		"Fills in a field of the page that is open in your browser, or chooses an option, and returns the page that comes of it. Numbers are those of the last page that was shown.")
	s.SubjectIn = func(env tools.Env, args json.RawMessage) string {
		var in input
		if json.Unmarshal(args, &in) != nil || in.Field == 0 {
			return ""
		}
		what := b.about(env, in.Field)
		if what != "" && in.Submit {
			what += ", and send the form"
		}
		return what
	}
	s.Listed = func(env tools.Env, args json.RawMessage) bool {
		var in input
		env.Wrote = nil // who wrote an address has not allowed to send anything there
		return json.Unmarshal(args, &in) == nil && b.listedAction(env, in.Field)
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if len(in.Text) > maxTyped {
			return tools.Result{}, invalid("field text: want at most %d bytes", maxTyped)
		}
		return b.with(ctx, env, "", func(s *session) (tools.Result, error) { return s.write(ctx, in.Field, in.Text, in.Submit) })
	})
}

func (b *Browsers) screenshotTool() tools.Tool {
	type input struct {
		Full bool `json:"full_page,omitempty" jsonschema:"true takes the whole page, also what must be scrolled to"`
	}
	s := spec("browser_screenshot", tools.ReadOnly, tools.Inside,
		"Takes a picture of the page that is open in your browser. It is kept as a file of yours, and you see it if you can see pictures.")
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		return b.with(ctx, env, "", func(s *session) (tools.Result, error) { return s.screenshot(ctx, env, in.Full) })
	})
}

func (b *Browsers) closeTool() tools.Tool {
	type input struct{}
	s := spec("browser_close", tools.Idempotent, tools.Inside, "Closes your browser. What it remembers, such as logins, is gone then.")
	return tools.New(s, func(ctx context.Context, env tools.Env, _ input) (tools.Result, error) {
		closed, err := b.forget(ctx, b.cfg.Key(env))
		switch {
		case err != nil:
			return tools.Result{}, err
		case !closed:
			return tools.Result{Text: "no browser was open"}, nil
		}
		return tools.Result{Text: "the browser is closed"}, nil
	})
}

// subject is what rules are about: the host of an address of the web, else the
// kind of the address.
func subject(address string) string {
	if host, err := egress.HostOf(address); err == nil {
		return host
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme
}

// listed reports whether an address needs no approval: it is listed, or it leads nowhere
// outside.
func (b *Browsers) listed(env tools.Env, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if u.Scheme == "file" || u.Scheme == "data" {
		return true
	}
	return b.cfg.Listed(env, address)
}

// about is what rules for an action of the page that was shown last are about: the
// host that the page is from, and the action in words. Empty without such a page
// or action.
func (b *Browsers) about(env tools.Env, number int) string {
	s := b.find(b.cfg.Key(env))
	if s == nil {
		return ""
	}
	last := s.screen()
	host := subject(last.URL)
	switch {
	case host == "" || number < 0 || number > len(last.Actions):
		return ""
	case number == 0:
		return host + ": back to the page before"
	}
	return host + ": " + inWords(last.Actions[number-1])
}

// listedAction is listed for an action of the page that was shown last: for where
// it leads, and for where the page is from. Without a page there is nothing that
// could go out.
func (b *Browsers) listedAction(env tools.Env, number int) bool {
	s := b.find(b.cfg.Key(env))
	if s == nil {
		return true
	}
	last := s.screen()
	if last.URL != "" && !b.listed(env, last.URL) {
		return false
	}
	if number < 1 || number > len(last.Actions) {
		return true
	}
	target := last.Actions[number-1].Target
	return target == "" || b.listed(env, target)
}
