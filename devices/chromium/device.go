package chromium

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/devices"
)

// The time limits of a device. A page that takes longer counts as crashed.
const (
	launchLimit = 100 * time.Second // on a loaded machine; a call of a tool has two minutes
	loadLimit   = 40 * time.Second
	lookLimit   = 30 * time.Second
	actLimit    = 30 * time.Second
	idleLimit   = 10 * time.Second // of WaitIdle, which then goes on
	quiet       = 250 * time.Millisecond
)

// A device is one browser with one tab.
type device struct {
	path  string
	spec  devices.Spec
	reach reach
	log   *slog.Logger
	gate  *gate
	// remote: the browser runs in a workspace, with neither path, home nor gate
	// here.
	remote *Remote

	// tab is the browser, as its library has it: a context that lives as long as
	// the browser does, and not as a call. nil: there is none.
	tab    context.Context
	end    context.CancelFunc
	home   string // a folder of its own
	watch  *watch
	guards sync.WaitGroup
	keys   map[string]string // of the actions of the screen, by their IDs
	closed bool
}

var _ devices.Device = (*device)(nil)

func (d *device) Starter() devices.Starter { return d }

func (d *device) Ensure(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case d.closed:
		return devices.Failed("the device is closed")
	case d.gate != nil || d.remote != nil:
		return nil
	}
	g, err := openGate(ctx, d.spec.Hosts, d.log)
	if err != nil {
		return &devices.Error{Text: "the browser's way out cannot be opened", Err: err}
	}
	d.gate = g
	return nil
}

// Provision implements devices.Starter. The next Launch begins with an empty
// profile.
func (d *device) Provision(ctx context.Context) error {
	d.quit()
	return d.Ensure(ctx)
}

func (d *device) Launch(ctx context.Context) error {
	if err := d.Ensure(ctx); err != nil {
		return err
	}
	if d.tab != nil && !d.dead() {
		return nil
	}
	d.quit()
	if err := d.start(ctx); err != nil {
		d.quit()
		return err
	}
	return d.open(ctx, d.spec.URL)
}

func (d *device) start(ctx context.Context) error {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	b, err := d.seat(life)
	if err != nil {
		stop()
		return err
	}
	quietly := func(format string, args ...any) { d.log.Debug("browser output", "format", format) }
	tab, gone := chromedp.NewContext(b.ctx, chromedp.WithLogf(quietly), chromedp.WithErrorf(quietly), chromedp.WithDebugf(func(string, ...any) {}))
	d.tab, d.end = tab, func() { b.close(); stop(); gone(); b.freed() }
	d.watch = newWatch()
	// The browser lives as long as the context of the first call, so what limits
	// the start ends the whole browser.
	late := time.AfterFunc(launchLimit, stop)
	defer late.Stop()
	defer context.AfterFunc(ctx, stop)()
	if err := d.prepare(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return b.fault(err)
	}
	return nil
}

// A seat is where a browser is about to run.
type seat struct {
	ctx   context.Context // of the library, with what starts the browser
	close func()          // ends the browser, where the end of ctx does not
	freed func()          // waits for the end of all of it
	fault func(error) error
}

func (d *device) seat(life context.Context) (seat, error) {
	if d.remote != nil {
		return d.remote.seat(life, d.log), nil
	}
	home, err := makeHome()
	if err != nil {
		return seat{}, &devices.Error{Text: "no folder can be made for the browser", Err: err}
	}
	d.home = home
	alloc, freed := chromedp.NewExecAllocator(life, d.options()...)
	return seat{ctx: alloc, close: func() {}, freed: freed, fault: func(err error) error {
		d.log.Error("the browser does not start", "path", d.path, "err", err)
		return &devices.Error{Text: "the browser does not start; try " + filepath.Base(d.path) + " --headless --version on the machine, and see the log", Err: err}
	}}, nil
}

func (d *device) prepare() error {
	if err := chromedp.Do(d.tab); err != nil { // starts it
		return err
	}
	c := chromedp.FromContext(d.tab)
	tree, err := chromedp.Call(d.tab, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return err
	}
	d.watch.main = tree.FrameTree.Frame.ID
	if err := chromedp.Listen(d.tab, d.watch.see); err != nil {
		return err
	}
	d.watch.guard(d.tab, d.reach, c.Target.TargetID, &d.guards)
	if _, err := chromedp.Call(d.tab, fetch.Enable, fetch.EnableParams{}); err != nil {
		return err
	}
	yes := true
	if _, err := chromedp.Call(d.tab, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true}); err != nil {
		return err
	}
	_, err = chromedp.CallBrowser(d.tab, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: &yes,
	})
	return err
}

func (d *device) options() []chromedp.ExecAllocatorOption {
	env := []string{"HOME=" + d.home, "XDG_CONFIG_HOME=" + d.home, "XDG_CACHE_HOME=" + d.home, "TMPDIR=" + d.home, "LANG=C.UTF-8"}
	if path, ok := os.LookupEnv("PATH"); ok {
		env = append(env, "PATH="+path)
	}
	all := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(d.path), chromedp.UserDataDir(filepath.Join(d.home, "profile")),
		chromedp.NoInheritEnv, chromedp.Env(env...), // what the environment holds is none of its business
		chromedp.ProxyServer(d.gate.address()), chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
	)
	for _, f := range careful {
		if name, value, found := strings.Cut(f, "="); found {
			all = append(all, chromedp.Flag(name, value))
		} else {
			all = append(all, chromedp.Flag(f, true))
		}
	}
	return all
}

func (d *device) open(ctx context.Context, address string) error {
	address = d.reach.resolve(address)
	if !d.reach.allows(address) {
		return d.reach.refusal(address)
	}
	return d.call(ctx, loadLimit, "open the page", func(tab context.Context) error {
		r, err := chromedp.Call(tab, page.Navigate, page.NavigateParams{URL: address})
		switch {
		case err != nil:
			return err
		case r.ErrorText != "" && !r.IsDownload:
			why := strings.TrimPrefix(r.ErrorText, "net::")
			if host, ok := devices.HostOf(address); ok {
				return devices.Failed("%s cannot be loaded (%s); is it running?", host, why)
			}
			return devices.Failed("%s cannot be loaded (%s); is it there?", devices.Line(devices.Plain(address), 200), why)
		}
		return nil
	})
}

// call does something with the tab within a time limit. Its errors are those of a
// device.
func (d *device) call(ctx context.Context, limit time.Duration, what string, do func(tab context.Context) error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case d.closed:
		return devices.Failed("the device is closed")
	case d.tab == nil || d.dead():
		return devices.Crashed("the browser is gone")
	}
	tab, cancel := context.WithTimeout(d.tab, limit)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	err := do(tab)
	var fault *devices.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &fault):
		return fault
	case d.dead():
		return &devices.Error{Crash: true, Text: "the browser is gone", Err: err}
	case tab.Err() != nil:
		return &devices.Error{Crash: true, Text: "the page does not answer any more", Err: err}
	}
	d.log.Debug("browser call failed", "what", what, "err", err)
	return &devices.Error{Text: "the browser could not " + what, Err: err}
}

func (d *device) dead() bool {
	if d.tab.Err() != nil || d.watch.gone() {
		return true
	}
	c := chromedp.FromContext(d.tab)
	if c == nil || c.Browser == nil {
		return true
	}
	select {
	case <-c.Browser.LostConnection:
		return true
	default:
		return false
	}
}

func (d *device) WaitIdle(ctx context.Context) error {
	return d.call(ctx, lookLimit, "wait for the page", func(tab context.Context) error {
		over := time.NewTimer(idleLimit)
		defer over.Stop()
		calm := time.NewTimer(quiet)
		defer calm.Stop()
		for {
			select {
			case <-tab.Done():
				return context.Cause(tab)
			case <-over.C:
				return nil
			case <-d.watch.changed:
				if d.watch.gone() {
					return devices.Crashed("the page crashed")
				}
			case <-calm.C:
				if d.watch.idle() {
					return nil
				}
			}
			calm.Reset(quiet)
		}
	})
}

func (d *device) quit() {
	if d.tab == nil {
		return
	}
	d.end()
	d.guards.Wait()
	d.tab, d.end, d.keys = nil, nil, nil
	if d.home == "" {
		return
	}
	for range 20 { // its last processes may still write
		if os.RemoveAll(d.home) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.log.Warn("failed to remove the directory of a browser", "path", d.home)
}

func (d *device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	d.quit()
	if d.gate == nil {
		return nil
	}
	return d.gate.Close()
}
