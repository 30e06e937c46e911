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

var errSignal = errors.New("received a signal to stop")

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
		log.Info("shutting down; waiting for active runs, a second signal stops immediately")
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

// reload replaces the settings of agents and access. A file that is unreadable,
// missing or without a key, while the one in force has keys, changes nothing, which
// status says until the next one is read.
func (d *daemon) reload(ctx context.Context, e *env) {
	next, _, err := e.load()
	if was := d.config.Load(); err == nil && was.Keyed() && !next.Keyed() {
		err = fmt.Errorf("configuration %s: the file is missing or has no key; restart claybot to run without one", was.Source.File)
	}
	if err != nil {
		text := err.Error()
		d.reloads.failed.Store(&text)
		d.log.Error("configuration reload failed; keeping the old configuration", "err", err)
		return
	}
	began := d.reloads.began
	unapplied(began, &next)
	logWarnings(d.log, next.Source.Warnings)
	d.reloads.failed.Store(nil)
	d.config.Store(&next)
	d.reloads.tell()
	for _, x := range []struct {
		what    string
		changed bool
	}{
		{"data_dir", began.DataDir != next.DataDir},
		{"http", began.HTTP.Addr != next.HTTP.Addr || !reflect.DeepEqual(began.HTTP.Guard, next.HTTP.Guard)},
		{"http_hosts", !slices.Equal(began.HTTP.Hosts, next.HTTP.Hosts)},
		{"telegram", began.Connectors.Telegram.Token.Value() != next.Connectors.Telegram.Token.Value() || rerouted(began.Connectors.Telegram, next.Connectors.Telegram, began.Connectors.Telegram.APIURL != next.Connectors.Telegram.APIURL)},
		{"slack", began.Connectors.Slack.BotToken.Value() != next.Connectors.Slack.BotToken.Value() || began.Connectors.Slack.AppToken.Value() != next.Connectors.Slack.AppToken.Value() ||
			rerouted(began.Connectors.Slack, next.Connectors.Slack, began.Connectors.Slack.APIURL != next.Connectors.Slack.APIURL)},
		{"cron", began.Schedule.Cron.Enabled != next.Schedule.Cron.Enabled || began.Schedule.Cron.Gates != next.Schedule.Cron.Gates},
		{"heartbeat.enabled", began.Schedule.Heartbeat.Enabled != next.Schedule.Heartbeat.Enabled},
	} {
		if x.changed {
			d.log.Warn("changed setting requires a restart", "key", x.what)
		}
	}
	d.warnOpen()
	if err := d.system.Reschedule(ctx); err != nil {
		d.log.Error("failed to update the due times of waiting messages", "err", err)
	}
	if err := d.limiter.Recheck(ctx); err != nil {
		d.log.Error("failed to check runs that wait for a budget", "err", err)
	}
	d.log.Info("configuration reloaded")
}

// rerouted reports whether a connector that is on now has another address than it runs
// with, or does not run, as it was off at the start.
func rerouted(began, next interface{ Off() string }, moved bool) bool {
	return next.Off() == "" && (moved || began.Off() != "")
}

// unapplied says of bad settings that only a restart would apply that the old ones
// hold, as far as they were good at the start.
func unapplied(began configs.Config, next *configs.Config) {
	for i, w := range next.Source.Warnings {
		stays := slices.Contains([]string{"http", "storage", "node", "files"}, w.Group()) && w.Off
		same := func(x configs.Warning) bool { return x.Off && x.Group() == w.Group() }
		if stays && !slices.ContainsFunc(began.Source.Warnings, same) {
			next.Source.Warnings[i] = w.Unapplied()
		}
	}
}
