package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/service"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/workspace/local"
)

type serveCmd struct{}

// Run runs the daemon until a signal ends it. SIGHUP reads the configuration
// anew.
func (serveCmd) Run(e *env) error {
	debug.SetGCPercent(gcPercent) // before the start allocates: it then ends without a collection
	c, warnings, err := e.load()
	if err != nil {
		return err
	}
	log := newLog(e.err, c)
	logWarnings(log, warnings)
	_ = local.Hide() // where it cannot be, the provider of local workspaces says so
	var boots atomic.Pointer[files.Boots]
	ctx, stop := untilSignal(context.Background(), log, func() { recordForced(boots.Load()) })
	defer stop()
	context.AfterFunc(ctx, func() { tell(log, service.Stopping) })
	d, err := openDaemon(ctx, c, log, func(link web.LoginLink) { e.invite(log, link) })
	if err != nil {
		return err
	}
	defer d.close()
	boots.Store(d.boots)
	if w := e.terminal(); w != nil {
		d.greet = func(text string) { fmt.Fprint(w, text) }
	}
	d.env = e
	e.tidy()
	stopReload := d.reloadOnHangup(ctx, e)
	defer stopReload()
	stopProbes := d.probeAtRest(ctx)
	defer stopProbes()
	return d.run(ctx)
}

// tell tells the service manager something. The daemon works as well if that fails.
func tell(log *slog.Logger, what func() error) {
	if err := what(); err != nil {
		log.Warn("failed to notify the service manager", "err", err)
	}
}

// terminal returns where to print links; nil unless that is a terminal: links are secrets, and
// what is no terminal is kept somewhere.
func (e *env) terminal() io.Writer {
	for _, w := range []io.Writer{e.err, e.out} {
		if isTerminal(w) {
			return w
		}
	}
	return nil
}

func logWarnings(log *slog.Logger, warnings []configs.Warning) {
	for _, w := range warnings {
		level := slog.LevelWarn
		if w.Off {
			level = slog.LevelError
		}
		attrs := []any{"problem", w.String()}
		if w.Next != "" {
			attrs = append(attrs, "next", w.Next)
		}
		log.Log(context.Background(), level, "invalid setting", attrs...)
	}
}

var errSignal = errors.New("asked to stop")

// untilSignal returns a context that ends with the first SIGTERM or SIGINT; the
// second one ends the process at once, after forced was called.
func untilSignal(ctx context.Context, log *slog.Logger, forced func()) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case _, signalled := <-signals:
			if !signalled {
				return // the work has ended by itself
			}
		}
		log.Info("shutting down; waiting for active runs, a second signal stops immediately")
		cancel(errSignal)
		if _, again := <-signals; again {
			forced()
			os.Exit(exitError)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
		<-done
	}
}

// forcedTime bounds how long the end by a second signal takes: the disk may hang.
const forcedTime = 500 * time.Millisecond

// recordForced records that an operator ends the process, so that the next one does not count it as a
// crash. boots is nil while the daemon is being opened.
func recordForced(boots *files.Boots) {
	if boots == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = boots.Forced() // otherwise it counts as a crash
	}()
	select {
	case <-done:
	case <-time.After(forcedTime):
	}
}
