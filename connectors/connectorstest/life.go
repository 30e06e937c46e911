package connectorstest

import (
	"fmt"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
)

// life are the checks of how a connector does, and of what it shows of its agents.
var life = []check{
	{"Life", "status follows the platform", func(w *world) {
		w.need(w.p.Down != nil)
		if h := w.conn.Health(); h.State != connectors.StateStarting {
			w.Errorf("before Run: %+v", h)
		}
		w.start()
		if h := w.conn.Health(); h.State != connectors.StateLive || h.LastOK.IsZero() {
			w.Errorf("running: %+v", h)
		}
		w.p.Down(true)
		time.Sleep(connectors.LiveWithin)
		if h := w.conn.Health(); h.State != connectors.StateFailing || h.Err == "" {
			w.Errorf("while the platform is down: %+v", h)
		}
		w.p.Down(false)
		time.Sleep(2 * time.Minute)
		if h := w.conn.Health(); h.State != connectors.StateLive {
			w.Errorf("afterwards: %+v", h)
		}
		w.write(Ann, "hello")
		w.redelivered()
		w.wantTexts("hello")
	}},
	{"Life", "a platform that hangs shows within 30 s", func(w *world) {
		w.need(w.p.Hang != nil)
		w.start()
		time.Sleep(time.Minute)
		w.p.Hang()
		failed := ""
		for range 60 {
			time.Sleep(time.Second)
			switch h := w.conn.Health(); h.State {
			case connectors.StateFailing:
				failed = h.Err
			case connectors.StateLive:
				if age := time.Since(h.LastOK); age >= connectors.LiveWithin {
					w.Fatalf("live %v after the last answer", age)
				}
			}
		}
		if failed == "" {
			w.Errorf("it never failed, or gave no reason: %+v", w.conn.Health())
		}
		time.Sleep(5 * time.Minute)
		if h := w.conn.Health(); h.State != connectors.StateLive || h.Err != "" {
			w.Errorf("afterwards: %+v", h)
		}
		w.write(Ann, "hello")
		w.redelivered()
		w.wantTexts("hello")
	}},
	{"Life", "revoked token stops it with a cause", func(w *world) {
		w.need(w.p.Revoke != nil)
		w.start()
		w.p.Revoke()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		select {
		case err := <-w.ended:
			w.stop = nil
			if kindOf(err) != permanent {
				w.Errorf("Run = %v", err)
			}
			w.noSecret("the error", fmt.Sprint(err))
		default:
			w.Error("it runs on")
		}
		if h := w.conn.Health(); h.State != connectors.StateStopped || h.Err == "" {
			w.Errorf("health %+v", h)
		}
	}},
	{"Life", "typing sign", func(w *world) {
		typer, types := w.conn.(connectors.Typer)
		status, shows := w.conn.(connectors.Statuser)
		w.need(types || shows)
		w.greeted(Ann)
		if types {
			if err := typer.Typing(w.Context(), w.p.Route(Ann, 1)); err != nil {
				w.Error(err)
			}
			return
		}
		w.need(w.p.Status != nil)
		message := w.inbox.all()[0].Context.MessageID
		for _, text := range []string{"is thinking", "is thinking", "is still working", "", ""} {
			lasts, err := status.Status(w.Context(), w.p.Route(Ann, 1), message, text)
			if got := w.p.Status(Ann, message); err != nil || lasts <= 0 || got != text {
				w.Errorf("status %q for %v, %v; want %q", got, lasts, err, text)
			}
		}
		if lasts, err := status.Status(w.Context(), w.p.Route(Ann, 1), "999", "is lost"); lasts != 0 || err != nil {
			w.Errorf("at a message that is not there: for %v, %v", lasts, err)
		}
	}},
}
