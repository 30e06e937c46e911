package chromium

import (
	"io"
	"log/slog"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/devices"
)

// Kill ends the process of a browser, as the system does when memory is short, and
// waits until that is known.
func Kill(d devices.Device) {
	b := chromedp.FromContext(d.(*device).tab).Browser
	_ = b.Process().Kill()
	<-b.LostConnection
}

// Place is how an address counts in a fingerprint.
func Place(address string) string { return place(address) }

// Home is the folder of a browser.
func Home(d devices.Device) string { return d.(*device).home }

// Counts are how many requests the gate of a device let pass, and shut out.
func Counts(d devices.Device) (passed, shut int) {
	g := d.(*device).gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed, g.shut
}

// WarnOfRoot is what Open says to the log.
func WarnOfRoot(log *slog.Logger, uid int) { warnOfRoot(log, uid) }

// Sweep removes what processes that do not live any more left over in a folder; self
// is the id of one that has made nothing there yet.
func Sweep(dir string, self int) { sweep(dir, self) }

// Lost waits until it is known that a browser is gone.
func Lost(d devices.Device) { <-chromedp.FromContext(d.(*device).tab).Browser.LostConnection }

// Bounded reads messages of at most max bytes.
func Bounded(r io.Reader, max int) io.Reader { return &bounded{r: r, max: max} }

// Allows reports whether a browser reaches an address; files is the folder that it
// shows.
func Allows(hosts devices.Hosts, web, loopback bool, files, address string) bool {
	r := reach{hosts: hosts, web: web, loopback: loopback, data: true, files: files}
	return r.allows(r.resolve(address))
}

// Resolve is an address as a browser that shows a folder takes it.
func Resolve(files, address string) string { return reach{files: files}.resolve(address) }
