package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
)

// settings is the configuration in force. A reload replaces it while the daemon runs.
type settings struct {
	atomic.Pointer[configs.Config]
	log    *slog.Logger
	began  configs.Config                           // the configuration at start
	failed atomic.Pointer[overview.SettingStatus]   // why the last reload failed; nil if it did not
	kept   atomic.Pointer[[]overview.SettingStatus] // of connectors that keep their old settings; nil for none
	moves  atomic.Pointer[people.Moves]

	// Of reload: the file was found without a key, and none has succeeded since; and the data directory of the text in force,
	// which a restart may have to apply.
	lost    bool
	dataDir string

	mu   sync.Mutex
	next chan struct{} // closed by the next reload
}

func newSettings(c configs.Config, log *slog.Logger) *settings {
	s := &settings{log: log, began: c, dataDir: c.DataDir, next: make(chan struct{})}
	c.Follow(s)
	s.Store(&c)
	return s
}

// Current implements configs.Moves.
func (s *settings) Current(connector, channel string) string {
	return s.moves.Load().Current(connector, channel)
}

// Former implements configs.Moves.
func (s *settings) Former(connector, channel string) []string {
	return s.moves.Load().Former(connector, channel)
}

// profile returns the profile of an agent.
func (s *settings) profile(a claybot.Agent) configs.Profile { return s.Load().Profile(a.Descriptor) }

// off returns a function that says why a part of the configuration is switched off.
func (s *settings) off(why func(configs.Config) string) func() string {
	return func() string { return why(*s.Load()) }
}

// gate returns the gate of a part of the configuration.
func (s *settings) gate(why func(configs.Config) string) connectors.Gate {
	return connectors.Gate{Why: s.off(why), Changed: s.changed}
}

// changed is closed by the next reload.
func (s *settings) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// replace puts c in force and wakes all who wait for changed.
func (s *settings) replace(c *configs.Config) {
	s.failed.Store(nil)
	c.Follow(s)
	s.Store(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.next)
	s.next = make(chan struct{})
}

// status lists what is wrong with the settings.
func (s *settings) status() []overview.SettingStatus {
	var all []overview.SettingStatus
	for _, w := range s.Load().Source.Warnings {
		x := overview.SettingStatus{Text: w.String(), Next: w.Next, Off: w.Off, Key: w.Key}
		if !w.Advice() { // which is no finding
			x.Next, x.Code = nextFor(w), w.Code()
		}
		all = append(all, x)
	}
	if kept := s.kept.Load(); kept != nil {
		all = append(all, *kept...)
	}
	for _, x := range s.moves.Load().Renamed(s.Load().Chats()) {
		all = append(all, overview.SettingStatus{Text: renamedText(x), Next: "change it to " + x.Now, Code: "chat-renamed", Key: x.Was})
	}
	if why := s.failed.Load(); why != nil {
		all = append(all, *why)
	}
	return all
}

// keeps says that a connector keeps its old settings, and what to do; nil if it does not.
func (s *settings) keeps(connector string) *overview.SettingStatus {
	if kept := s.kept.Load(); kept != nil {
		for _, k := range *kept {
			if k.Connector == connector {
				return &k
			}
		}
	}
	return nil
}

// renamedText says that the configuration names a chat by an id that it has no more.
func renamedText(x people.Renamed) string {
	return fmt.Sprintf("the configuration names %s, which is now %s; what it says holds for the new name as well", x.Was, x.Now)
}

// doubtful lists settings that are allowed and seldom intended.
func doubtful(c configs.Config) (all []string) {
	if c.NamelessProxy() {
		all = append(all, "http.trusted_proxies is set and http_hosts is not: requests by the host name of the proxy are refused; add the name to http_hosts")
	}
	if c.Access.Mode == configs.AccessOpen {
		all = append(all, "access is open: anyone who finds this bot can use it and spend your money; to restrict it, "+restrictsAccess(c))
	}
	if c.Model.Keyless() {
		all = append(all, noKey(c.Model)+"; "+setKey)
	}
	return all
}

// restrictsAccess is the next step where access is open: it changes the variable or the file that opens it.
func restrictsAccess(c configs.Config) string {
	if v := c.Value("access.mode"); len(v) == 1 && v[0].Above {
		return "set CLAYBOT_ACCESS=pairing"
	}
	return "run: claybot config set access.mode pairing"
}

// noKey says that a provider is asked without a key.
func noKey(m configs.Model) string { return "calls to " + m.ID() + " use no key" }

// setKey is the next step for a model without a key.
const setKey = "set OPENAI_API_KEY or ANTHROPIC_API_KEY, unless the server needs none"

// warn logs settings that are allowed and seldom intended.
func (s *settings) warn() {
	for _, text := range doubtful(*s.Load()) {
		s.log.Warn(text) //nolint:sloglint // each is a constant
	}
}

// reload reads the configuration again. It returns what it could not apply without a restart.
// A file that is unreadable, missing or, unless emptied, empty, while the one in force has
// keys, changes nothing and is an error; status shows that until a reload succeeds. So is, after that, a text for
// another data directory: a command that did not find the daemon has begun it. before is called with the next configuration before it is in force.
func (s *settings) reload(e *env, emptied bool, before func(configs.Config)) (restart []string, err error) {
	next, _, err := e.load()
	hideAlso(s.log, next)
	switch was := s.Load(); {
	case err != nil:
	case was.Keyed() && !next.Keyed() && (!emptied || next.Source.File == ""):
		s.lost = true
		err = keyless(was.Source.File, next.Source.File == "")
	case s.lost && next.DataDir != s.dataDir && next.DataDir != s.began.DataDir:
		err = fmt.Errorf("configuration %s: its text was gone, and this one is for another data directory than %s; put the text back, or restart claybot to start without it", was.Source.File, s.dataDir)
	default:
		err = next.CheckLocal()
	}
	if err != nil {
		s.fail(err)
		return nil, err
	}
	s.lost, s.dataDir = false, next.DataDir
	unapplied(s.began, &next)
	logWarnings(s.log, next.Source.Warnings)
	before(next)
	setLevel(s.log, next)
	s.replace(&next)
	restart = s.waiting(next)
	for _, key := range restart {
		s.log.Warn("changed setting requires a restart", "key", key)
	}
	s.warn()
	return restart, nil
}

// keyless is the error of a file that had keys and is missing, or has none any more.
func keyless(file string, missing bool) error {
	if missing {
		return fmt.Errorf("configuration: %w; restart claybot to run without one", &fs.PathError{Op: "open", Path: file, Err: syscall.ENOENT})
	}
	return fmt.Errorf("configuration %s: the file has no key; restart claybot to run without one", file)
}

// waiting are the settings whose values in another configuration would wait for a restart.
func (s *settings) waiting(now configs.Config) (all []string) {
	for _, x := range restartOnly {
		if x.changed(s.began, now) {
			all = append(all, x.key)
		}
	}
	return all
}

// fail notes why the configuration could not be read again. Status shows that until a reload succeeds.
func (s *settings) fail(err error) {
	code, text, next := configCode(err), err.Error(), ""
	switch code {
	case "local-refused":
		text, next = advised(err)
	case "config-missing":
		next = putBack
	}
	s.failed.Store(&overview.SettingStatus{
		Text: "configuration reload failed, and claybot tries again when the file changes; the old configuration stays in force: " + text,
		Next: cmp.Or(next, nextOf(code)), Off: true, Code: code,
	})
	s.log.Error("configuration reload failed; keeping the old configuration", "err", err)
}

// restartOnly are the settings that a reload cannot apply.
var restartOnly = []struct {
	key     string
	changed func(began, next configs.Config) bool
}{
	{"data_dir", func(a, b configs.Config) bool { return a.DataDir != b.DataDir }},
	{"http", func(a, b configs.Config) bool {
		return a.HTTP.Addr != b.HTTP.Addr || !reflect.DeepEqual(a.HTTP.Guard, b.HTTP.Guard)
	}},
	{"http_hosts", func(a, b configs.Config) bool { return !slices.Equal(a.HTTP.Hosts, b.HTTP.Hosts) }},
	{"cron.enabled", func(a, b configs.Config) bool { return a.Schedule.Cron.Enabled != b.Schedule.Cron.Enabled }},
	{"cron.gates", func(a, b configs.Config) bool { return a.Schedule.Cron.Gates != b.Schedule.Cron.Gates }},
	{"metrics_listen", func(a, b configs.Config) bool { return a.Telemetry.MetricsListen != b.Telemetry.MetricsListen }},
	{"storage", func(a, b configs.Config) bool {
		a.Storage.Files, b.Storage.Files = configs.Files{}, configs.Files{}
		return !reflect.DeepEqual(a.Storage, b.Storage)
	}},
	{"files", func(a, b configs.Config) bool { return !reflect.DeepEqual(a.Storage.Files, b.Storage.Files) }},
	{"node", func(a, b configs.Config) bool { return !reflect.DeepEqual(a.Node, b.Node) }},
	{"log", func(a, b configs.Config) bool { return a.Log.Format != b.Log.Format }},
	{"transcription", func(a, b configs.Config) bool {
		x, y := a.Transcription, b.Transcription
		return y.Off() == "" && (x.Wanted() != y.Wanted() || x.Model != y.Model || x.BaseURL != y.BaseURL || x.Key.Value() != y.Key.Value())
	}},
	{"speech", func(a, b configs.Config) bool {
		x, y := a.Speech, b.Speech
		return y.Off() == "" && (x.Wanted() != y.Wanted() || x.Model != y.Model || x.Voice != y.Voice || x.BaseURL != y.BaseURL || x.Key.Value() != y.Key.Value())
	}},
	{"workspaces.ttl", func(a, b configs.Config) bool { return a.Tools.Workspace.TTL != b.Tools.Workspace.TTL }},
	{"maxBatch", func(a, b configs.Config) bool { return maxBatch(a) < maxBatch(b) }},
	{"heartbeat.enabled", func(a, b configs.Config) bool { return a.Schedule.Heartbeat.Enabled != b.Schedule.Heartbeat.Enabled }},
}

// unapplied marks the warnings about settings that only a restart applies and that were
// valid at the start: the old values stay in force.
func unapplied(began configs.Config, next *configs.Config) {
	for i, w := range next.Source.Warnings {
		stays := slices.Contains([]string{"http", "storage", "node", "files", "metrics_listen"}, w.Group()) && w.Off
		same := func(x configs.Warning) bool { return x.Off && x.Group() == w.Group() }
		if stays && !slices.ContainsFunc(began.Source.Warnings, same) {
			next.Source.Warnings[i] = w.Unapplied()
		}
	}
}

// A reloaded is what came of a reload.
type reloaded struct {
	File    string   `json:"file"`              // that was read, its whole path; empty for none
	Failed  string   `json:"failed,omitempty"`  // why nothing was applied
	Restart []string `json:"restart,omitempty"` // keys that only a restart applies
	Refused []string `json:"refused,omitempty"` // why a connector keeps its old settings
	Idle    []string `json:"idle,omitempty"`    // why a new connector does not work
	Shadows []string `json:"shadows,omitempty"` // flags and variables that set keys of the request, and win over the file
	// Differs are the settings of a comparison that are others here, with their origin.
	Differs map[string]string `json:"differs,omitempty"`
}

// A reloading asks for a reload. emptied: the file has no key any more, which was meant.
type reloading struct {
	emptied bool
	done    chan reloaded // gets one
}

// reload applies the configuration again.
func (d *daemon) reload(ctx context.Context, e *env, emptied bool) (r reloaded) {
	restart, err := d.config.reload(e, emptied, func(next configs.Config) { d.retire(ctx, next) })
	if file := d.config.Load().Source.File; file != "" {
		r.File, _ = filepath.Abs(file) // else the working directory is gone
	}
	if err != nil {
		r.Failed = err.Error()
		return r
	}
	r.Restart = restart
	d.models.prune()
	d.listeners.relay.apply(ctx, *d.config.Load()) // first, as it asks no platform
	d.listeners.sendTraces(*d.config.Load())
	r.Refused, r.Idle = d.reconnect(ctx)
	d.tooling.servers.apply()
	if err := d.system.Reschedule(ctx); err != nil {
		d.log.Error("failed to apply the configuration to stored messages", "err", err)
	}
	if err := d.limiter.Recheck(ctx); err != nil {
		d.log.Error("failed to check runs that wait for a budget", "err", err)
	}
	d.log.Info("configuration reloaded")
	return r
}

// reloadAsked answers a request to reload.
func (d *daemon) reloadAsked(w http.ResponseWriter, r *http.Request) {
	var with comparison
	compares := r.ContentLength != 0 && json.NewDecoder(r.Body).Decode(&with) == nil // a caller may have none
	out, ok := d.askReload(r.Context(), r.URL.Query().Has("empty"))
	if !ok {
		return // the caller is gone, or claybot stops
	}
	out.Shadows = shadows(*d.config.Load(), r.URL.Query()["key"])
	if compares {
		out.Differs = with.differs(*d.config.Load())
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // else the caller is gone
}

// askReload has the configuration reloaded, see reloading. It reports false when ctx ends first, or
// claybot stops.
func (d *daemon) askReload(ctx context.Context, emptied bool) (out reloaded, ok bool) {
	asked := reloading{emptied: emptied, done: make(chan reloaded, 1)}
	select {
	case d.reloads <- asked:
	case <-ctx.Done():
		return out, false
	case <-d.settled:
		return out, false
	}
	select {
	case out = <-asked.done:
		return out, true
	case <-ctx.Done():
	case <-d.settled:
	}
	return out, false
}

// reloadOnHangup reloads the configuration on each SIGHUP, each request, and each change of the
// file. The returned function ends that and waits for it.
func (d *daemon) reloadOnHangup(ctx context.Context, e *env) func() {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	stop := d.reloadOn(ctx, e, hangups)
	return func() {
		signal.Stop(hangups)
		stop()
	}
}

// reloadOn reloads the configuration on each of hangups, each request, and each change of the file.
// The returned function ends that for good and waits for it; the end of run ends it as well.
func (d *daemon) reloadOn(ctx context.Context, e *env, hangups <-chan os.Signal) func() {
	ctx, cancel := context.WithCancel(ctx)
	watch := newFileWatch(e, d.config.Load().Source.Version)
	var done sync.WaitGroup
	done.Go(func() { // the end waits for no platform that a reload asks
		select {
		case <-d.ending:
			cancel()
		case <-ctx.Done():
		}
	})
	done.Go(func() {
		defer close(d.settled)
		look := time.NewTicker(lookFile)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				switch changed, err := watch.changed(); {
				case err != nil:
					d.config.fail(err)
				case changed:
					d.reload(ctx, e, false)
				}
			case <-hangups:
				watch.tried()
				d.reload(ctx, e, false)
			case asked := <-d.reloads:
				watch.tried()
				asked.done <- d.reload(ctx, e, asked.emptied)
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}
