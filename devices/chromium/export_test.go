package chromium

import (
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
func Counts(d devices.Device) (passed, shut int) { return d.(*device).gate.counts() }

// WarnOfRoot is what Open says to the log.
func WarnOfRoot(log *slog.Logger, uid int) { warnOfRoot(log, uid) }

// Sweep removes what processes that do not live any more left over in a folder; self
// is the id of one that has made nothing there yet.
func Sweep(dir string, self int) { sweep(dir, self) }
