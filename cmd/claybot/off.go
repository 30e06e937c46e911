package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
)

// correctModel and correctConnector are what to do about settings that switch
// something off.
const (
	correctModel     = "Correct it, then restart claybot; kill -HUP is enough for the file."
	correctConnector = "Correct it, then restart claybot."
)

// An offModel refuses every call: a bad setting says where it would go, or what it
// may take.
type offModel struct {
	why   string
	agent bool // not the model itself: the agent
}

// Chat implements llm.Model. No request leaves.
func (m offModel) Chat(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{}, m.refusal()
}

func (m offModel) refusal() *llm.Error {
	return &llm.Error{Class: llm.Off, Agent: m.agent, Text: m.why + ". " + correctModel}
}

// switchedOff returns the error that every run of an agent ends with while a setting of
// its model, its profile or a budget is bad; nil while none is.
func (d *daemon) switchedOff(ctx context.Context, a claybot.Agent) *runs.Error {
	m := d.chooseModel(a)
	if w, ok := m.(*watched); ok {
		m = w.model
	}
	if off, ok := m.(offModel); ok {
		return runs.Off(off.refusal())
	}
	if why := d.limiter.Refused(ctx, a.ID); why != "" && !d.model(a).Demo() {
		return &runs.Error{Code: runs.CodeBudget, Say: why}
	}
	return nil
}

// settingStatus lists what is wrong with the settings.
func (d *daemon) settingStatus() []overview.SettingStatus {
	var all []overview.SettingStatus
	for _, w := range d.config.Load().Source.Warnings {
		all = append(all, overview.SettingStatus{Text: w.String(), Next: w.Next, Off: w.Off})
	}
	if why := d.reloads.failed.Load(); why != nil {
		all = append(all, overview.SettingStatus{
			Text: "the configuration was not reloaded, so the settings of before hold: " + *why,
			Next: "correct the file, then kill -HUP or restart claybot", Off: true,
		})
	}
	return all
}

// An offChat stands for a connector that a bad setting switches off. It is stopped,
// and what is to be sent there waits.
type offChat struct{ name, why string }

var _ connectors.Connector = offChat{}

// Name implements connectors.Connector.
func (c offChat) Name() string { return c.name }

// Run implements connectors.Connector.
func (c offChat) Run(context.Context, connectors.Handler) error {
	return &connectors.PermanentError{Err: errors.New(c.why)}
}

// Health implements connectors.Connector.
func (c offChat) Health() connectors.Health { return offHealth(c.why) }

func offHealth(why string) connectors.Health {
	return connectors.Health{State: connectors.StateStopped, Err: why + ". " + correctConnector}
}

// reloads tells of each change of the configuration.
type reloads struct {
	began  configs.Config         // that the process was started with
	failed atomic.Pointer[string] // why the last one was not read; nil: it was

	mu   sync.Mutex
	next chan struct{}
}

// changed is closed by the next reload.
func (r *reloads) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = make(chan struct{})
	}
	return r.next
}

func (r *reloads) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		close(r.next)
	}
	r.next = make(chan struct{})
}

// A lever switches a connector that runs off while a setting that was reloaded is
// bad.
type lever struct {
	off     func() string
	changed func() <-chan struct{}
}

var errOff = errors.New("a bad setting switches it off")

// run runs a connector whenever it is not off.
func (l lever) run(ctx context.Context, run func(context.Context) error) error {
	for {
		changed := l.changed()
		if l.off() == "" {
			err := l.untilOff(ctx, run)
			if !errors.Is(err, errOff) || ctx.Err() != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// untilOff runs a connector until it ends or is switched off, which is errOff.
func (l lever) untilOff(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	defer func() { cancel(nil); <-watched }()
	go func() {
		defer close(watched)
		for changed := l.changed(); ; changed = l.changed() {
			if l.off() != "" {
				cancel(errOff)
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
	err := run(ctx)
	if errors.Is(context.Cause(ctx), errOff) {
		return errOff
	}
	return err
}

func (l lever) health(h connectors.Health) connectors.Health {
	if why := l.off(); why != "" {
		return offHealth(why)
	}
	return h
}

// The connectors with a lever keep all their powers.
type (
	switchedTelegram struct {
		*telegram.Connector
		lever lever
	}
	switchedSlack struct {
		*slack.Connector
		lever lever
	}
	switchedCron struct {
		*cron.Cron
		lever lever
	}
	switchedBeats struct {
		*heartbeat.Heartbeat
		lever lever
	}
)

// Run implements connectors.Connector.
func (s switchedTelegram) Run(ctx context.Context, h connectors.Handler) error {
	return s.lever.run(ctx, func(ctx context.Context) error { return s.Connector.Run(ctx, h) })
}

// Run implements connectors.Connector.
func (s switchedSlack) Run(ctx context.Context, h connectors.Handler) error {
	return s.lever.run(ctx, func(ctx context.Context) error { return s.Connector.Run(ctx, h) })
}

// Run implements connectors.Connector.
func (s switchedCron) Run(ctx context.Context, h connectors.Handler) error {
	return s.lever.run(ctx, func(ctx context.Context) error { return s.Cron.Run(ctx, h) })
}

// Run implements connectors.Connector.
func (s switchedBeats) Run(ctx context.Context, h connectors.Handler) error {
	return s.lever.run(ctx, func(ctx context.Context) error { return s.Heartbeat.Run(ctx, h) })
}

// Health implements connectors.Connector.
func (s switchedTelegram) Health() connectors.Health { return s.lever.health(s.Connector.Health()) }

// Health implements connectors.Connector.
func (s switchedSlack) Health() connectors.Health { return s.lever.health(s.Connector.Health()) }

// Health implements connectors.Connector.
func (s switchedCron) Health() connectors.Health { return s.lever.health(s.Cron.Health()) }

// Health implements connectors.Connector.
func (s switchedBeats) Health() connectors.Health { return s.lever.health(s.Heartbeat.Health()) }

// off is why a part of the configuration as it is now is switched off.
func (d *daemon) off(why func(configs.Config) string) func() string {
	return func() string { return why(*d.config.Load()) }
}

func (d *daemon) lever(why func(configs.Config) string) lever {
	return lever{d.off(why), d.reloads.changed}
}

// A switchedSink takes events only while its settings are good.
type switchedSink struct {
	runs.Sink
	there func() bool
}

// Publish implements runs.Sink.
func (s switchedSink) Publish(ctx context.Context, events []claybot.Event) error {
	if !s.there() {
		return &runs.SinkError{Text: "its settings are bad or gone since the last reload; `claybot status` says more", Refused: true}
	}
	return s.Sink.Publish(ctx, events)
}

// switchedHearing refuses recordings while a bad setting says where they would go.
func (d *daemon) switchedHearing(hear hearing) hearing {
	return func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error) {
		if why := d.config.Load().Transcription.Off(); why != "" {
			return llm.Speech{}, llm.Failed(llm.Off, "%s", why)
		}
		return hear(ctx, run, f, open)
	}
}
