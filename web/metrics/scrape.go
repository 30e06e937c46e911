package metrics

import (
	"context"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
)

// scrapeTime bounds what a scrape waits for the store.
const scrapeTime = 5 * time.Second

// A snapshot is what is read at a scrape.
type snapshot struct {
	now      time.Time
	version  string
	status   overview.Status
	told     bool     // status could be read
	ok       bool     // and its values are those of the store at this moment
	cluster  *Cluster // nil: none
	memory   []metrics.Sample
	process  process
	exporter exported
}

func (m *Metrics) snapshot(ctx context.Context) *snapshot {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	s := &snapshot{now: time.Now(), version: m.cfg.Version, memory: readRuntime(), process: readProcess()}
	if m.cfg.Status != nil {
		var err error
		if s.status, err = m.cfg.Status(ctx); err != nil {
			m.log.Warn("some figures cannot be read", "err", err)
		}
		s.told = err == nil
		s.ok = s.told && !s.status.Unknown && s.status.AsOf == 0
	}
	m.prime(s)
	if m.cfg.Cluster != nil {
		c := m.cfg.Cluster()
		s.cluster = &c
	}
	s.exporter = m.exporter.figures()
	return s
}

// prime begins the counts of failures at 0 for what is configured, so that the first failure is an increase.
func (m *Metrics) prime(s *snapshot) {
	for _, c := range s.status.Connectors {
		m.live.by["sends_total"].add(0, m.live.connectors.learn(c.Name), delivery.AttemptFailed)
	}
	if m.cfg.Models == nil {
		return
	}
	for _, model := range m.cfg.Models() {
		for _, class := range []llm.Class{llm.Transient, llm.Rate, llm.Permanent} {
			m.live.by["model_calls_failed_total"].add(0, model, string(class))
		}
	}
}

// scraped are the families that are read at a scrape.
func scraped() []*family {
	read := atScrape
	all := []*family{
		read("claybot_build_info", gauge, "1, with the versions as labels.", func(s *snapshot, set func(float64, ...string)) {
			set(1, s.version, runtime.Version())
		}, "version", "goversion"),
		read("claybot_store_up", gauge, "1 when the store could be read for this scrape. Else what it counts is left out.", func(s *snapshot, set func(float64, ...string)) {
			set(truth(s.ok))
		}),
		read("claybot_agents", gauge, "Agents that exist.", stored(func(s *snapshot, set func(float64, ...string)) {
			set(float64(s.status.Agents))
		})),
		read("claybot_messages_waiting", gauge, "Messages that no run has taken yet.", stored(func(s *snapshot, set func(float64, ...string)) {
			set(float64(s.status.Inbox.Waiting))
		})),
		read("claybot_messages_waiting_oldest_seconds", gauge, "Age of the message that waits longest; 0 when none waits.", stored(func(s *snapshot, set func(float64, ...string)) {
			set(age(s.now, s.status.Inbox.Oldest.Time()))
		})),
		read("claybot_runs", gauge, "Runs in the store, by state.", stored(func(s *snapshot, set func(float64, ...string)) {
			for _, state := range []claybot.RunState{claybot.RunPending, claybot.RunRunning, claybot.RunAwaiting, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled} {
				set(float64(s.status.Runs[state]), string(state))
			}
		}), "state"),
		read("claybot_outbox_messages", gauge, "Outgoing messages in the store, by state.", stored(func(s *snapshot, set func(float64, ...string)) {
			for _, state := range []claybot.SendState{claybot.SendWaiting, claybot.SendAttempted, claybot.SendSent, claybot.SendAmbiguous, claybot.SendFailed} {
				set(float64(s.status.Outbox[state]), string(state))
			}
		}), "state"),
		read("claybot_outbox_ambiguous_total", counter, "Sends whose arrival was unknown at first, since the store was created.", stored(func(s *snapshot, set func(float64, ...string)) {
			set(float64(s.status.Ambiguous))
		})),
		read("claybot_check_problem", gauge, "1 when the newest check of the data directory found a problem, by check: database, histories, copy.", told(func(s *snapshot, set func(float64, ...string)) {
			for _, what := range slices.Sorted(maps.Keys(s.status.Checks)) {
				set(truth(s.status.Checks[what].Problem), what)
			}
		}), "check"),
		read("claybot_check_age_seconds", gauge, "Time since the newest check of the data directory ended, by check.", told(func(s *snapshot, set func(float64, ...string)) {
			for _, what := range slices.Sorted(maps.Keys(s.status.Checks)) {
				set(age(s.now, s.status.Checks[what].At.Time()), what)
			}
		}), "check"),
	}
	all = append(all, connectorFamilies()...)
	all = append(all, clusterFamilies()...)
	all = append(all, exporterFamilies()...)
	all = append(all, processFamilies()...)
	return append(all, runtimeFamilies()...)
}

// atScrape is a family whose samples f reads at a scrape.
func atScrape(name string, k kind, help string, f func(*snapshot, func(float64, ...string)), labels ...string) *family {
	return &family{name: name, kind: k, help: help, read: f, labels: labels}
}

func connectorFamilies() []*family {
	return []*family{
		atScrape("claybot_connector_up", gauge, "1 when the connector works; left out while an operator has stopped it.", told(func(s *snapshot, set func(float64, ...string)) {
			for _, c := range s.status.Connectors {
				if c.State != connectors.StateOff { // nothing is wrong with it
					set(truth(c.State == connectors.StateLive), c.Name)
				}
			}
		}), "connector"),
		atScrape("claybot_connector_last_success_age_seconds", gauge, "Time since the connector last completed something; left out before the first time.", told(func(s *snapshot, set func(float64, ...string)) {
			for _, c := range s.status.Connectors {
				if !c.LastOK.IsZero() {
					set(age(s.now, c.LastOK), c.Name)
				}
			}
		}), "connector"),
		atScrape("claybot_webhook_refused_total", counter, "Requests to a webhook whose sender did not prove who it is, since the start.", told(func(s *snapshot, set func(float64, ...string)) {
			for _, c := range s.status.Connectors {
				if c.Refused != nil {
					set(float64(c.Refused.Count), c.Name)
				}
			}
		}), "connector"),
	}
}

// stored leaves out what the store counts when it cannot be read: no figure is
// better than a wrong one.
func stored(f func(*snapshot, func(float64, ...string))) func(*snapshot, func(float64, ...string)) {
	return func(s *snapshot, set func(float64, ...string)) {
		if s.ok {
			f(s, set)
		}
	}
}

// told leaves out what the daemon itself knows when it does not say.
func told(f func(*snapshot, func(float64, ...string))) func(*snapshot, func(float64, ...string)) {
	return func(s *snapshot, set func(float64, ...string)) {
		if s.told {
			f(s, set)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// age is the time since then in seconds; 0 for no time, and for one to come.
func age(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(now.Sub(then).Seconds(), 0)
}
