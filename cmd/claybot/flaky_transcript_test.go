package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/telegram"
)

// A proxy loses responses for ten seconds while a person chats. With -v the test
// prints what happened, call by call.
func TestFlakyProxyTranscript(t *testing.T) {
	fates := []string{loses, answers502, passes, drops, loses, refusesCall}
	odds := rand.New(rand.NewPCG(2, 2))
	var began time.Time
	healed := false
	f := &flaky{}
	f.fate = func(string) string {
		if healed {
			return passes
		}
		return fates[odds.IntN(len(fates))]
	}
	onTelegram(t, telegram.Config{Delivery: telegram.DeliveryDirect}, f, func(h *house, w window) {
		began = time.Now()
		line := func(format string, args ...any) {
			_, _ = fmt.Fprintf(h.Output(), "%7.2f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...)) // only a log
		}
		f.report = func(method, fate string) { line("  %s: %s", method, fate) }
		for i := range 5 {
			line("Ann writes: word%d", i)
			w.say(fmt.Sprintf("word%d", i))
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		f.mu.Lock()
		healed = true
		line("the proxy works again")
		f.mu.Unlock()
		all := h.outbox()
		f.mu.Lock()
		f.report = nil
		f.mu.Unlock()
		_, _ = fmt.Fprintln(h.Output(), "\nThe chat shows:") // only a log
		for _, text := range w.shown() {
			_, _ = fmt.Fprintf(h.Output(), "  - %.90s\n", strings.ReplaceAll(text, "\n", " ")) // only a log
		}
		ambiguous := 0
		for _, o := range all {
			if o.Copies > 0 {
				ambiguous++
			}
			if o.State != claybot.SendSent && o.State != claybot.SendFailed {
				h.Errorf("not ended: %+v", o)
			}
		}
		if ambiguous == 0 {
			h.Error("the proxy did no harm")
		}
		checkCopies(h, w, 5)
	})
}
