package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A guidedBrowser is a real browser of the size of a phone, in front of a guided daemon. It is used with
// its keyboard alone.
type guidedBrowser struct {
	*guided
	ctx context.Context

	mu       sync.Mutex
	problems []string // scripts that failed
}

// browse opens a browser and logs it in.
func (g *guided) browse() *guidedBrowser {
	g.Helper()
	exe, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			g.Fatal("no chromium here, and with CI=true all tests run; apt-get install chromium")
		}
		g.Skip("SKIPPED, the guide is not tested in a browser: no chromium here; apt-get install chromium")
	}
	all, end := chromedp.NewExecAllocator(g.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(exe), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-dev-shm-usage", true))...)
	g.Cleanup(end)
	b := &guidedBrowser{guided: g}
	var cancel context.CancelFunc
	b.ctx, cancel = chromedp.NewContext(all)
	g.Cleanup(cancel)
	b.ctx, cancel = context.WithTimeout(b.ctx, 10*time.Minute) // for a browser that hangs
	g.Cleanup(cancel)
	if err := chromedp.Listen(b.ctx, func(ev any) {
		if e, ok := ev.(*runtime.EventExceptionThrown); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.problems = append(b.problems, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
		}
	}); err != nil {
		g.Fatal(err)
	}
	b.do("log in", phone, chromedp.Navigate(g.fresh()), b.sees(`document.body.dataset.connection === "on"`))
	return b
}

// phone is the size of the window.
var phone = chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
	_, err := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 740, DeviceScaleFactor: 1, Mobile: true})
	return err
})

func (b *guidedBrowser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		seen, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`)) // only for the message below
		b.Fatalf("%s: %v; the page shows:\n%s\nlog:\n%s", what, err, seen, b.log.String())
	}
}

// is reads the value of an expression.
func (b *guidedBrowser) is(expr string) string {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expr))
	if err != nil {
		b.Fatalf("%s: %v", expr, err)
	}
	return v
}

// sees waits until an expression is true. A page that is left meanwhile is no failure.
func (*guidedBrowser) sees(expr string) chromedp.Action[chromedp.Void] {
	ask := chromedp.Evaluate[bool]("Boolean(" + expr + ")")
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		end := time.After(patience)
		for {
			holds, err := ask(ctx, tab)
			if err == nil && holds {
				return nil
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-end:
				return fmt.Errorf("never true: %s (%w)", expr, cmp.Or(err, errors.New("no error")))
			case <-tick.C:
			}
		}
	})
}

// text waits until an element has a text.
func (b *guidedBrowser) text(place, words string) chromedp.Action[chromedp.Void] {
	return b.sees(`document.querySelector(` + quoteJS(place) + `)?.textContent.includes(` + quoteJS(words) + `)`)
}

// key presses a key: Tab, Enter or the space bar.
func (*guidedBrowser) key(name, text string, code int64) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for _, typ := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			p := input.DispatchKeyEventParams{Type: typ, Key: name, Code: name, WindowsVirtualKeyCode: code, NativeVirtualKeyCode: code}
			if typ == input.DispatchKeyEventTypeKeyDown {
				p.Text = text
			}
			if _, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// enters goes to a field, button or link by its focus, and presses Enter there.
func (b *guidedBrowser) enters(place string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(b.sees(`document.querySelector(`+quoteJS(place)+`)`), chromedp.Focus(place), b.key("Enter", "\r", 13))
}

// pastes puts a text into a field as a paste does, and presses Enter.
func (b *guidedBrowser) pastes(place, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(b.sees(`document.querySelector(`+quoteJS(place)+`)`), chromedp.Focus(place),
		chromedp.Evaluate[chromedp.Void](`(() => { const f = document.querySelector(`+quoteJS(place)+`); f.select(); document.execCommand("insertText", false, `+quoteJS(text)+`); })()`),
		b.key("Enter", "\r", 13))
}

func quoteJS(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

// checked checks that the page fits a phone, has room to touch, names for its fields, and no secret.
func (b *guidedBrowser) checked(where string) {
	b.Helper()
	for what, expr := range map[string]string{
		"fits the window":                `document.documentElement.scrollWidth <= innerWidth`,
		"has one first heading":          `document.querySelectorAll("h1").length === 1`,
		"has a name for each control":    `[...document.querySelectorAll("main input:not([type=hidden]), main select")].every((e) => e.labels.length > 0 || e.ariaLabel)`,
		"has room to touch each button":  `[...document.querySelectorAll("main button, main summary, main .setup-steps a, main a.button")].filter((e) => e.checkVisibility({visibilityProperty: true}) && e.offsetHeight > 0).every((e) => e.offsetHeight >= 44)`,
		"has each id once":               `new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`,
		"has no secret in its address":   `!/FAKE|xoxb|xapp|sk-/.test(location.href)`,
		"has no secret in what is shown": `!/FAKE-|xoxb-test|xapp-test/.test(document.documentElement.outerHTML)`,
	} {
		if b.is(`String(`+expr+`)`) != "true" {
			b.Errorf("it is not so that %s %s:\n%s", where, what, b.is(`document.querySelector("main").outerHTML.slice(0, 6000)`))
		}
	}
}

// A new user sets a model, Telegram, Slack, Discord, a budget and workspaces up on the page, by the
// keyboard on a phone, until the model has replied in its chat: without a restart, and without a file that
// is edited.
func TestBrowserSetup(t *testing.T) {
	g := newGuided(t)
	b := g.browse()
	pid := g.cmd.Process.Pid
	b.do("the banner of the chats", b.enters("#guide-demo a"), b.sees(`location.pathname === "/ui/setup"`), b.text("#step-title", "The model that answers"))
	b.checked("the model")
	// A token in the place of the key, a key that is refused, and an address that is none.
	b.do("another address", b.sees(`document.querySelector("#model-form [value=other]")`), chromedp.Focus("#model-form [value=other]"), b.key(" ", " ", 32), b.sees(`document.querySelector("#address").checkVisibility()`))
	b.do("a token as the key", chromedp.Focus("#address"), chromedp.SendKeys("#address", g.modelURL), b.pastes("#model-form #secret", telegramtest.Token), b.text("#model-form [data-error]", "which belongs to the step telegram"))
	b.do("a reload in the middle", chromedp.Reload(), b.sees(`document.body.dataset.connection === "on" && document.querySelector("#model-form #secret")?.value === ""`))
	b.do("again", chromedp.Focus("#model-form [value=other]"), b.key(" ", " ", 32), chromedp.SendKeys("#address", g.modelURL), b.pastes("#model-form #secret", guidedKey),
		b.sees(`document.activeElement?.id === "model-name" && document.querySelector("#model-form #secret").value !== ""`))
	b.do("the model", b.enters("#use-model"), b.text("#found", "gpt-5 answers"), b.text("#setup-steps", "set Model"))
	b.checked("the model that is set")

	b.do("to Telegram", b.enters("#next"), b.text("#step-title", "A Telegram bot"), b.pastes("#secret", wrongToken), b.text("#answer-form [data-error]", "the bot token is refused (401)"))
	b.do("the token", b.pastes("#secret", telegramtest.Token), b.text("#found", "the token is that of @claybot"), b.sees(`document.querySelector("#qr path") && document.querySelector("#pair-link")`))
	b.checked("Telegram")
	_, code, _ := strings.Cut(b.is(`document.querySelector("#pair-link").href`), "?start=")
	g.telegram.Write(telegramtest.Incoming{ChatID: 1001, UserID: 1001, Text: "/start " + code})
	b.do("the press", b.text("#operator", "telegram/1001 is the operator"))

	b.do("to Slack", b.enters("#next"), b.sees(`document.querySelector("#manifest")?.href.startsWith("https://api.slack.com/apps?new_app=1&manifest_yaml=")`))
	b.do("the tokens in any order", b.pastes("#secret", "xapp-test"), b.text("#slack-tokens", "App-level token (xapp-…)there"), b.pastes("#secret", "xoxb-test"), b.sees(`document.querySelector("#pair-code")`))
	b.checked("Slack")
	g.slack.DM("U1", b.is(`document.querySelector("#pair-code").textContent`))
	b.do("the code", b.text("#operator", "slack/U1 is the operator"))

	b.do("to Discord", b.enters("#next"), b.text("#step-title", "A Discord bot"), b.pastes("#secret", discordtest.Token), b.sees(`document.querySelector("#pair-code")`), b.sees(`document.querySelector("#add-bot a").href.startsWith("https://discord.com/oauth2/authorize?client_id=")`))
	b.checked("Discord")

	b.do("the budget", b.enters("#next"), b.text("#step-title", "What agents may take"), b.pastes("#value", "a lot"), b.text("#fault-value", "is neither a number of tokens"), b.pastes("#value", "2000000"), b.text("#budget-now", "tokens: 2000000"))
	b.checked("the budget")
	b.do("workspaces", b.enters("#next"), b.text("#step-title", "Where commands of agents run"), b.sees(`document.querySelector("#answer-form [value=off]")`), chromedp.Focus("#answer-form [value=off]"), b.key(" ", " ", 32), b.enters("#apply"), b.text("#setup-steps", "set Workspace"))
	b.checked("workspaces")

	b.do("the first message", b.enters("#next"), b.sees(`location.pathname === "/" && document.body.dataset.connection === "on" && document.querySelector("#state").dataset.state === "live"`), b.text("#guide", "Last step"), b.pastes("#text", "hello"),
		b.sees(`[...document.querySelectorAll(".bot .bubble")].some((e) => e.textContent.includes("echo: hello"))`), b.text("#guide", "claybot is set up"))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		t.Error("a script failed: " + p)
	}
	if g.cmd.Process.Pid != pid || g.logs("changed setting requires a restart") {
		t.Error("a restart was needed")
	}
	g.private()
}
