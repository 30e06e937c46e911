// Package chromium is a device whose applications are web applications, in a real
// Chromium without a window.
//
// A browser has a profile of its own, which is thrown away with it, and nothing of
// the environment of this process but the path. It reaches the hosts of its Spec
// and nothing else, in two layers. What a page asks for is looked at before it is
// asked for, redirects and parts of the page included; and the one way out of the
// browser is a gate of this package, which connects to those hosts alone, whatever
// it is that asks: pages, workers, sockets, or the browser itself. Windows that
// open are closed, dialogs dismissed, downloads refused, and each of these is told
// as a fault of the screen.
//
// As an ordinary user the browser keeps its own sandbox. Root's has none, which
// each Open says in the log.
//
// Pages are untrusted: their content is read in an isolated world of scripts that
// theirs cannot reach, and bounded. A page that hangs for longer than a time limit counts
// as crashed.
//
// Only cmd imports it. It alone uses chromedp.
package chromium

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/claybot/claybot/devices"
)

// A Browser opens devices. The zero Browser takes what is installed.
type Browser struct {
	// Path is the program; empty: what is found under the usual names.
	Path string
	Log  *slog.Logger // nil discards
}

// names are those under which the program is installed.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// Find returns the path of the program. The error says what to do where there is
// none.
func (b Browser) Find() (string, error) {
	all := names
	if b.Path != "" {
		all = []string{b.Path}
	}
	for _, name := range all {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	if b.Path != "" {
		return "", devices.Failed("there is no Chromium at %s; correct the path or install the package chromium", b.Path)
	}
	return "", devices.Failed("no Chromium is installed here; install it, on Debian with apt-get install chromium")
}

// Open is a devices.Open. Nothing is started before Launch. For root, whose
// browser has no sandbox, it leaves a warning in the log. The first Open of a
// process removes the profiles that killed ones have left over.
func (b Browser) Open(ctx context.Context, s devices.Spec) (devices.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := b.Find()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Hosts.Len() == 0:
		return nil, devices.Failed("no host may be reached; name the hosts that may")
	case !s.Hosts.AllowsURL(s.URL):
		return nil, devices.Failed("%s is not within %s", devices.Plain(s.URL), s.Hosts)
	}
	sweepOnce()
	d := &device{path: path, spec: s, reach: reach{hosts: s.Hosts}, log: b.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	warnOfRoot(d.log, os.Getuid())
	return d, nil
}

// warnOfRoot says that a browser that root starts has no sandbox: Chromium does
// not start with one, so its library turns it off.
func warnOfRoot(log *slog.Logger, uid int) {
	if uid == 0 {
		log.Warn("the browser runs without its sandbox because claybot runs as root; a page that breaks out of the browser is root here; run claybot as an ordinary user")
	}
}

// careful are the flags of every browser, wherever it runs: nothing leaves the browser
// except what pages ask for, and it shows no window, asks no question, makes no sound.
var careful = strings.Fields(`
	disable-gpu window-size=1280,860 disable-quic no-pings
	webrtc-ip-handling-policy=disable_non_proxied_udp force-webrtc-ip-handling-policy
	block-new-web-contents disable-component-update disable-domain-reliability
	disable-features=Translate,BlinkGenPropertyTrees,OptimizationHints,MediaRouter,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,AutofillServerCommunication,Prerender2
	mute-audio deny-permission-prompts
`)

// usual are the flags that chromedp gives to a browser that it starts itself.
var usual = strings.Fields(`
	no-first-run no-default-browser-check headless=new hide-scrollbars disable-background-networking
	enable-features=NetworkService,NetworkServiceInProcess disable-background-timer-throttling
	disable-backgrounding-occluded-windows disable-breakpad disable-client-side-phishing-detection
	disable-default-apps disable-dev-shm-usage disable-extensions disable-hang-monitor
	disable-ipc-flooding-protection disable-popup-blocking disable-prompt-on-repost
	disable-renderer-backgrounding disable-sync force-color-profile=srgb metrics-recording-only
	safebrowsing-disable-auto-update enable-automation password-store=basic
`)
