package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/workspace"
)

const (
	// probeEvery is how often claybot asks parts that are not used, and how long a success counts:
	// what worked since then is not asked. probeAgain is how often it asks while a part does not work.
	probeEvery = 30 * time.Minute
	probeAgain = 5 * time.Minute
)

// probes are the answers of parts that have no state of their own.
type probes struct {
	asking sync.Mutex // held while they are asked

	mu     sync.Mutex
	known  map[string]overview.Finding // by what they are about; without Means
	worked map[string]bool             // since the start, by the same
}

// set replaces all answers.
func (p *probes) set(all []overview.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = make(map[string]overview.Finding)
	if p.worked == nil {
		p.worked = make(map[string]bool)
	}
	for _, f := range all {
		p.known[f.What] = f
		p.worked[f.What] = p.worked[f.What] || f.Level == overview.LevelOK
	}
}

// findings adds the answers to a list. Chats do not have what has not worked since the start: many
// machines have no Docker, and need none.
func (p *probes) findings(l *findingList) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.known {
		if f.Level == overview.LevelOK {
			l.works(f.What, f.Part)
			continue
		}
		if l.wrong(f.What, f.Part, f.Level, f.Code, f.Text, f.Next); !p.worked[f.What] {
			l.all[len(l.all)-1].Means = ""
		}
	}
}

// probeAtRest asks all parts at the start, after each reload, and at rest, until ctx or run ends. It
// pays for no answer. The returned function waits for the end.
func (d *daemon) probeAtRest(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		select {
		case <-d.ending:
			cancel()
		case <-ctx.Done():
		}
	})
	done.Go(func() {
		for ctx.Err() == nil {
			changed := d.config.changed()
			every := probeEvery
			if !d.probe(ctx, probeEvery) {
				every = probeAgain
			}
			again := time.NewTimer(every - every/8 + rand.N(every/4)) //nolint:gosec // spreads the questions of many daemons
			select {
			case <-ctx.Done():
			case <-changed:
			case <-again.C:
			}
			again.Stop()
		}
	})
	return func() { cancel(); done.Wait() }
}

// probe asks the models, connectors, MCP servers, providers of workspaces and time zones, all at once and
// for at most verifyTime. It skips what worked within a time. It reports whether all parts work.
func (d *daemon) probe(life context.Context, fresh time.Duration) (well bool) {
	d.probes.asking.Lock()
	defer d.probes.asking.Unlock()
	ctx, cancel := context.WithTimeout(life, verifyTime)
	defer cancel()
	c := d.config.Load()
	var mu sync.Mutex
	var all []overview.Finding
	var asking sync.WaitGroup
	ask := func(what string, part texts.Part, question func() (code, text, next string)) {
		asking.Go(func() {
			f := overview.Finding{What: what, Level: overview.LevelProblem, Part: part}
			if f.Code, f.Text, f.Next = question(); f.Code == postgres.CodeOK {
				f.Level = overview.LevelOK
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, f)
		})
	}
	for _, m := range modelsOf(c) {
		asking.Go(func() { d.probeModel(ctx, m, fresh) })
	}
	for _, x := range d.roster.all() {
		v, verifies := x.(connectors.Verifier)
		h := x.Health()
		if !verifies || h.State != connectors.StateLive { // the state of others says what is wrong
			continue
		}
		ask("credentials of "+x.Name(), texts.Part{Kind: texts.PartConnector, Name: x.Name()}, func() (code, text, next string) {
			if time.Since(h.LastOK) < max(fresh, probeAgain) {
				return postgres.CodeOK, "", ""
			}
			return refusedBy(v.Verify(ctx))
		})
	}
	for _, name := range providersOf(c) {
		if d.stores.orders.Stopped(nodes.Key{Kind: nodes.Workspace, Name: name}) != nil {
			continue
		}
		ask("workspaces "+name, texts.Part{Kind: texts.PartWorkspace, Name: name}, func() (code, text, next string) {
			return unusable(name, d.tooling.workspaces.manager.Check(ctx, name))
		})
	}
	for _, zone := range zonesOf(*c) {
		ask("time zone "+zone, texts.Part{Kind: texts.PartZone, Name: zone}, func() (code, text, next string) { return unknownZone(zone) })
	}
	d.tooling.servers.manager.Relist(fresh)
	asking.Wait()
	if life.Err() != nil {
		return true // what the end cut off says nothing
	}
	d.probes.set(all)
	return !slices.ContainsFunc(d.findings(overview.Status{}), func(f overview.Finding) bool {
		return f.Level != overview.LevelOK && f.Code != "node-stopped" && f.Code != "restart-pending"
	})
}

// probeModel asks the providers of a model for its list, unless the model worked within a time. What is
// not asked for, or answers anything but a list or a refusal, says nothing. One route with one key that
// is taken is enough: the others follow when it fails.
func (d *daemon) probeModel(ctx context.Context, m configs.Model, fresh time.Duration) {
	w := d.models.of(m)
	if w.fresh(time.Now().Add(-fresh)) {
		return
	}
	var first modelProblem
	for _, r := range keyedRoutes(m) {
		names, err := listModels(ctx, r)
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return
		}
		switch code, text := listedOr(r, names, err); code {
		case "credential-refused", "model-unreachable":
			first = cmp.Or(first, modelProblem{code, text})
		default:
			w.probed(modelProblem{}, code == postgres.CodeOK)
			return
		}
	}
	w.probed(first, false)
}

// modelsOf are the models of a configuration that can be asked.
func modelsOf(c *configs.Config) (all []configs.Model) {
	seen := make(map[string]bool)
	for _, p := range c.Agents.Profiles {
		if key := fingerprint(p.Model); !seen[key] && !p.Model.Demo() && p.Model.Off() == "" {
			seen[key] = true
			all = append(all, p.Model)
		}
	}
	return all
}

// providersOf are the providers of workspaces that profiles use.
func providersOf(c *configs.Config) []string {
	names := make(map[string]bool)
	for _, p := range c.Agents.Profiles {
		if w := p.Workspace.Provider; w != configs.Off && w != "" {
			names[w] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// zonesOf are the time zones of schedules.
func zonesOf(c configs.Config) (names []string) {
	for _, zone := range []*time.Location{c.Schedule.Cron.Zone, c.Schedule.Heartbeat.Zone} {
		if zone != nil && !slices.Contains(names, zone.String()) {
			names = append(names, zone.String())
		}
	}
	return names
}

// unknownZone returns the code, cause and next step of a time zone.
func unknownZone(zone string) (code, text, next string) {
	if _, err := time.LoadLocation(zone); err != nil {
		return "time-zone-unknown", "unknown time zone " + zone, "install the package tzdata, or set another zone"
	}
	return postgres.CodeOK, "", ""
}

// refusedBy returns the code, cause and next step of credentials. A platform that does not answer says
// nothing about them: its connector says so itself.
func refusedBy(err error) (code, text, next string) {
	if p := (*connectors.PermanentError)(nil); errors.As(err, &p) {
		return "credential-refused", p.Err.Error(), p.Fix
	}
	return postgres.CodeOK, "", ""
}

// unusable returns the code, cause and next step of a provider of workspaces.
func unusable(provider string, err error) (code, text, next string) {
	if err == nil {
		return postgres.CodeOK, "", ""
	}
	code = "docker-unusable"
	if provider == configs.WorkspaceLocal {
		code = "local-refused"
	}
	if known, ok := errors.AsType[*workspace.Error](err); ok {
		text, next, _ = strings.Cut(known.Text, ": ")
		return code, text, next
	}
	return code, err.Error(), ""
}

// probeAsked answers a request to ask all parts now, also those that worked lately, and to tell
// operators what they do not know.
func (d *daemon) probeAsked(w http.ResponseWriter, r *http.Request) {
	d.probe(r.Context(), 0)
	d.system.Look(r.Context())
	w.WriteHeader(http.StatusNoContent)
}
