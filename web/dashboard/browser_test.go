package dashboard_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// A browser is a real one with one tab, logged in.
type browser struct {
	*rig
	ctx context.Context

	mu       sync.Mutex
	problems []string // scripts and requests that failed, and what the policy of the page refused
	requests map[network.RequestID]request
	excused  string // why requests may fail now; empty: they may not
	// excusedUntil is when the newest excuse ended.
	excusedUntil time.Time
}

// browse opens a browser and logs it in by a link. Where none is installed the
// test is skipped with a line that says so; where CI=true that is a failure.
func (r *rig) browse() *browser {
	r.Helper()
	b := &browser{rig: r, ctx: chromium(r.T), requests: make(map[network.RequestID]request)}
	err := chromedp.Listen(b.ctx, b.watch)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			r.Error(p)
		}
	})
	b.do("log in", chromedp.Navigate(r.srv.NewLoginLink().URL), chromedp.WaitVisible("#text"), until(`document.body.dataset.connection === "on"`))
	return b
}

// chromium opens a window without cookies or stored data of other tests in the browser
// that all tests share.
func chromium(t *testing.T) context.Context {
	t.Helper()
	err := startBrowser()
	switch {
	case errors.Is(err, errNoBrowser) && os.Getenv("CI") != "true":
		t.Skip("SKIPPED, the page is not tested: " + err.Error())
	case err != nil:
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute) // for a browser that hangs
	t.Cleanup(cancel)
	return ctx
}

// shared is the context of the browser of all tests: to start one takes longer than
// most tests.
var shared context.Context

// endBrowser ends the shared browser if a test has started it.
func endBrowser() {
	if shared != nil {
		_ = chromedp.Cancel(shared) // its process ends with this one at the latest
	}
}

var errNoBrowser = errors.New("no chromium here; apt-get install chromium")

// startBrowser starts the shared browser once.
var startBrowser = sync.OnceValue(func() error {
	exe := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			exe = path
			break
		}
	}
	if exe == "" {
		return errNoBrowser
	}
	// Its profile is where the allocator makes one and takes it away: processes of a
	// browser that has ended may still write to it for a moment.
	all, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(exe), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WindowSize(1280, 860),
	)...)
	shared, _ = chromedp.NewContext(all)
	return chromedp.Do(shared)
})

// do is what a person does in the browser.
func (b *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		seen, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`)) // only for the message below
		b.Fatalf("%s: %v; the page shows:\n%s\nlog:\n%s", what, err, seen, b.logged())
	}
}

// open goes to a path and waits until the page is live.
func (b *browser) open(path string) {
	b.Helper()
	b.do("open "+path, chromedp.Navigate("http://"+b.srv.Addr()+path), until(`document.body.dataset.connection === "on"`))
}

// is reads the value of a JavaScript expression.
func is[T any](b *browser, expr string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expr))
	if err != nil {
		b.Fatalf("%s: %v", expr, err)
	}
	return v
}

// patience ends a wait that has failed; a slow machine does not reach it.
const patience = time.Minute

// until waits until a JavaScript expression is true, or a promise of that. A
// page that is left meanwhile is no failure: the next one is asked.
func until(expr string) chromedp.Action[chromedp.Void] {
	ask := chromedp.Evaluate[bool]("Promise.resolve("+expr+").then(Boolean, () => false)", chromedp.EvalAwaitPromise)
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		end := time.After(patience)
		for {
			once, cancel := context.WithTimeout(ctx, patience)
			holds, err := ask(once, tab)
			cancel()
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

// js quotes a string for JavaScript.
func js(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

// num is a number for JavaScript.
func num(n int) string { return strconv.Itoa(n) }

// keys are what press knows.
var keys = map[string]int{"Enter": 13, "Tab": 9, "Escape": 27, " ": 32, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "/": 191}

// press presses a key as a keyboard does: the page may cancel it, unlike the
// "\n" of SendKeys.
func press(names ...string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for _, name := range names {
			text := ""
			switch name {
			case "Enter":
				text = "\r"
			case " ", "/":
				text = name
			}
			for _, typ := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
				p := input.DispatchKeyEventParams{
					Type: typ, Key: name, Code: name, WindowsVirtualKeyCode: int64(keys[name]), NativeVirtualKeyCode: int64(keys[name]),
				}
				if typ == input.DispatchKeyEventTypeKeyDown {
					p.Text = text
				}
				if _, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, p); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// typed writes a message and presses Enter.
func typed(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.SendKeys("#text", text), press("Enter"))
}

// screen sets the size of the window.
func screen(width, height int64, phone bool) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone,
		})
		return err
	})
}

// hostile are texts that would run a script, or spoil the page, if anything but
// text was made of them.
var hostile = []string{
	`<img src=x onerror="window.hacked=1">`,
	`<script>window.hacked=1</script>`,
	`[click](javascript:window.hacked=1)`,
	`<svg/onload=window.hacked=1>`,
	`"><iframe srcdoc="<script>parent.hacked=1</script>">`,
	"\x1b[2J\x1b]0;title\x07 {{.}} ' \" ` \u202Eevil\u202C",
}
