package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/workspace/local"
)

type serveCmd struct{}

// Run runs the daemon until a signal ends it. SIGHUP reads the configuration
// anew.
func (serveCmd) Run(e *env) error {
	c, warnings, err := e.load()
	if err != nil {
		return err
	}
	log := newLog(e.err, c)
	logWarnings(log, warnings)
	_ = local.Hide() // where it cannot be, the provider of local workspaces says so
	ctx, stop := untilSignal(context.Background(), log)
	defer stop()
	d, err := openDaemon(ctx, c, log, e.invite)
	if err != nil {
		return err
	}
	defer d.close()
	stopReload := d.reloadOnHangup(ctx, e)
	defer stopReload()
	return d.run(ctx)
}

// invite prints where to chat, on a terminal alone: the links are secrets, and
// what is no terminal is kept somewhere.
func (e *env) invite(links string) {
	w := e.out
	switch {
	case isTerminal(e.err):
		w = e.err
	case !isTerminal(e.out):
		return
	}
	here, elsewhere, more := strings.Cut(links, "\n")
	fmt.Fprintf(w, "\n  Chat in the browser:  %s\n", here)
	if more {
		fmt.Fprintf(w, "  On another device:    %s\n", elsewhere)
	}
	fmt.Fprint(w, "  Chat in the terminal: claybot chat\n\n")
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
		log.Log(context.Background(), level, "a setting was not understood", attrs...)
	}
}

var errSignal = errors.New("a signal asked for the end")

// untilSignal returns a context that ends with the first SIGTERM or SIGINT; the
// second one ends the process at once.
func untilSignal(ctx context.Context, log *slog.Logger) (context.Context, func()) {
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
		log.Info("shutting down; runs in flight get a moment, a second signal ends at once")
		cancel(errSignal)
		if _, again := <-signals; again {
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

// reloadOnHangup applies the configuration anew with each SIGHUP. The returned
// function ends that and waits for it.
func (d *daemon) reloadOnHangup(ctx context.Context, e *env) func() {
	ctx, cancel := context.WithCancel(ctx)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				d.reload(ctx, e)
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		cancel()
		<-done
	}
}

// reload replaces the settings of agents and access; an unreadable file changes
// nothing.
func (d *daemon) reload(ctx context.Context, e *env) {
	next, warnings, err := e.load()
	if err != nil {
		d.log.Error("the configuration was not reloaded; the old one stays", "err", err)
		return
	}
	logWarnings(d.log, warnings)
	old := d.config.Swap(&next)
	d.reloads.tell()
	for _, x := range []struct {
		what    string
		changed bool
	}{
		{"data_dir", old.DataDir != next.DataDir},
		{"http", old.HTTP != next.HTTP || !reflect.DeepEqual(old.HTTPGuard, next.HTTPGuard)},
		{"http_hosts", !slices.Equal(old.HTTPHosts, next.HTTPHosts)},
		{"telegram", old.Telegram.Token.Value() != next.Telegram.Token.Value() || old.Telegram.APIURL != next.Telegram.APIURL && next.Telegram.Off() == ""},
		{"slack", old.Slack.BotToken.Value() != next.Slack.BotToken.Value() || old.Slack.AppToken.Value() != next.Slack.AppToken.Value()},
		{"cron", old.Cron.Enabled != next.Cron.Enabled || old.Cron.Gates != next.Cron.Gates},
		{"heartbeat.enabled", old.Heartbeat.Enabled != next.Heartbeat.Enabled},
	} {
		if x.changed {
			d.log.Warn("a changed setting needs a restart", "key", x.what)
		}
	}
	d.warnOpen()
	if err := d.system.Reschedule(ctx); err != nil {
		d.log.Error("waiting messages keep their old due times", "err", err)
	}
	if err := d.purse.Recheck(ctx); err != nil {
		d.log.Error("runs that wait for a budget were not looked at", "err", err)
	}
	d.log.Info("configuration reloaded")
}
