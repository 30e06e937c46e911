package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
)

// inside starts a daemon in this process. Its warnings go to standard error.
func (e *env) inside(ctx context.Context, cfg configs.Config) (*client, func() error, error) {
	return e.insideHolding(ctx, cfg, nil)
}

// insideHolding is inside for a daemon of whose connectors those with a name in held are as stopped by an
// operator, while it runs: they connect to nothing.
func (e *env) insideHolding(ctx context.Context, cfg configs.Config, held []string) (*client, func() error, error) {
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	log := newLog(e.err, cfg)
	logWarnings(log, cfg.Source.Warnings)
	d, err := openDaemon(ctx, cfg, log, nil)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	d.env = e
	if order := (nodes.Order{By: "claybot import", At: claybot.Now()}); held != nil {
		d.roster.order = func(name string) *nodes.Order {
			if slices.Contains(held, name) {
				return &order
			}
			return d.orderOf(name)
		}
	}
	stopReload := d.reloadOn(ctx, e, nil) // the end of the terminal ends this process
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	stop := func() error {
		stopReload()
		cancel()
		err := <-ended
		d.close()
		return err
	}
	select {
	case <-d.listeners.web.Up():
	case err := <-ended:
		cancel()
		stopReload()
		d.close()
		return nil, nil, err
	}
	cl, err := dial(cfg.DataDir)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return cl, stop, nil
}
