package dashboard

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// healthPages are the pages of how the installation is doing, and what became of messages.
type healthPages struct {
	*pages
	system web.System
}

// healthRoutes are the page of how everything is doing.
func (b *healthPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/health", "health", b.health),
		b.part("/ui/health/now", "health", "health-now", b.health),
		{Pattern: "GET /ui/live", Scope: web.Read, Handler: http.HandlerFunc(b.live)},
		b.screen("/ui/nodes", "nodes", b.nodes),
		b.part("/ui/nodes/now", "nodes", "nodes-now", b.nodes),
		b.screen("/ui/why", "why", b.whyOf),
		b.part("/ui/why/stories", "why", "stories", b.whyOf),
	}
}

// A healthView is how everything is doing.
type healthView struct {
	viewer
	overview.Status
	Tone       string // of all together: good, warn, bad
	Verdict    string // in one sentence
	Connectors []connectorView
	Sinks      []sinkView
	Servers    []serverState
	Model      modelView
	Outbox     []stateCount
	Runs       []stateCount
	Disk       *diskView // nil where the system does not tell
	Findings   []finding
}

// A finding is something in the daemon itself that needs attention.
type finding struct{ Tone, Text string }

// findingsOf are the findings about a daemon, the worst first.
func findingsOf(s overview.Status) (all []finding) {
	if s.Unwell != "" {
		all = append(all, finding{"bad", "claybot takes less work: " + strings.TrimSuffix(s.Unwell, ".") + "."})
	}
	if s.Parked != nil && s.Parked.Full {
		all = append(all, finding{"bad", "The parking table is full: further messages wait at their source."})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Checks)) {
		if c := s.Checks[name]; c.Problem {
			all = append(all, finding{"bad", sentence("Check of the " + name + ": " + c.Text)})
		}
	}
	if s.Faulty > 0 {
		all = append(all, finding{"warn", plural(s.Faulty, "agent cannot be used; the log shows why.", "agents cannot be used; the log shows why.")})
	}
	if p := s.Parked; p != nil && p.Messages > 0 {
		all = append(all, finding{"warn", plural(p.Messages, "message is parked until its agent can be used.", "messages are parked until their agents can be used.")})
	}
	if x := s.Start; x != nil {
		all = append(all, finding{"warn", "claybot did not end in order " + plural(x.Unclean, "time", "times") + " in a row and resumes its runs a few at a time; " + plural(x.Waiting, "agent waits.", "agents wait.")})
	}
	return all
}

// A connectorView is how one connector is doing.
type connectorView struct {
	Name, State, Words, Tone string
	LastOK                   claybot.Time
	Err                      string
}

// A sinkView is how one receiver of events outside is doing.
type sinkView struct {
	runs.SinkHealth
	Words, Tone string
}

func viewSink(h runs.SinkHealth) sinkView {
	v := sinkView{SinkHealth: h}
	switch {
	case h.Error != "":
		v.Words, v.Tone = "fails and tries again", "warn"
	case h.Standby:
		v.Words, v.Tone = "is told by another node", "calm"
	case h.Backlog > 0:
		v.Words, v.Tone = "is catching up", "busy"
	case h.Success == 0:
		v.Words, v.Tone = "waits for the first event", "calm"
	default:
		v.Words, v.Tone = "works", "good"
	}
	return v
}

// A serverState is how one MCP server is doing.
type serverState struct {
	overview.ServerStatus
	Words, Tone string
}

func viewServerState(s overview.ServerStatus) serverState {
	v := serverState{s, "works", "good"}
	if s.OK {
		return v
	}
	v.Tone = "warn"
	switch s.State {
	case "starting":
		v.Words, v.Tone = "starting", "busy"
	case "waiting":
		v.Words = "fails and tries again"
	case "login":
		v.Words = "needs a login: claybot mcp login " + s.Name
	case "refused":
		v.Words = "its settings are wrong"
	default:
		v.Words = s.State
	}
	return v
}

// A modelView is how the model answers.
type modelView struct {
	Name, Tone, Words string
	LastOK            claybot.Time
	Err               string
}

// A diskView is the space that is left.
type diskView struct {
	Free, Total string
	Used        int // percent
	Tone, Words string
}

func (b *healthPages) health(r *http.Request) (any, error) {
	s, err := b.system.Status(r.Context())
	if err != nil {
		return nil, err
	}
	return viewHealth(viewerOf(r), s), nil
}

func viewHealth(who viewer, s overview.Status) healthView {
	v := healthView{viewer: who, Status: s, Outbox: outboxCounts(s.Outbox), Runs: runCounts(s.Runs), Model: viewModel(s.Model)}
	for _, c := range s.Connectors {
		v.Connectors = append(v.Connectors, viewConnector(c))
	}
	for _, h := range s.Sinks {
		v.Sinks = append(v.Sinks, viewSink(h))
	}
	for _, x := range s.Servers {
		v.Servers = append(v.Servers, viewServerState(x))
	}
	if s.Disk != nil {
		v.Disk = viewDisk(*s.Disk)
	}
	v.Findings = findingsOf(s)
	v.Tone, v.Verdict = v.sum()
	return v
}

func viewConnector(c overview.ConnectorStatus) connectorView {
	v := connectorView{Name: c.Name, State: c.State, LastOK: claybot.At(c.LastOK), Err: c.Err}
	switch c.State {
	case connectors.StateLive:
		if c.Err != "" {
			v.Words, v.Tone = "works in part", "warn"
			break
		}
		v.Words, v.Tone = "works", "good"
	case connectors.StateStarting:
		v.Words, v.Tone = "starting", "busy"
	case connectors.StateFailing:
		v.Words, v.Tone = "fails and tries again", "warn"
	case connectors.StateStopped:
		v.Words, v.Tone = "stopped, needs you", "bad"
	case connectors.StateStandby:
		v.Words, v.Tone = "stands by", "calm"
	default:
		v.Words, v.Tone = c.State, "calm"
	}
	if c.Held != "" {
		v.Words, v.Tone, v.Err = "takes nothing in", "bad", strings.TrimSpace(sentence(c.Held)+" "+c.Err)
	}
	return v
}

func viewModel(m overview.ModelStatus) modelView {
	v := modelView{Name: m.Name, LastOK: claybot.At(m.LastOK), Err: m.Err}
	switch {
	case m.Err != "":
		v.Tone, v.Words = "bad", "does not answer"
	case m.Name == "":
		v.Tone, v.Words = "warn", "none is configured"
	case m.LastOK.IsZero():
		v.Tone, v.Words = "calm", "was not asked yet"
	default:
		v.Tone, v.Words = "good", "answers"
	}
	return v
}

func viewDisk(d overview.DiskStatus) *diskView {
	v := diskView{Free: bytesOf(d.Free), Total: bytesOf(d.Total), Tone: "good", Words: "enough room"}
	if d.Total > 0 {
		v.Used = int(float64(d.Total-d.Free) / float64(d.Total) * 100)
	}
	switch {
	case d.Free < 100<<20:
		v.Tone, v.Words = "bad", "almost full: make room, or messages cannot be stored"
	case d.Free < 1<<30 || v.Used >= 95:
		v.Tone, v.Words = "warn", "getting full"
	}
	return &v
}

// runCounts are the runs by state.
func runCounts(counts map[claybot.RunState]int) []stateCount {
	all := make([]stateCount, 0, 6)
	for _, s := range []claybot.RunState{
		claybot.RunPending, claybot.RunRunning, claybot.RunAwaiting, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled,
	} {
		if s == claybot.RunPending && counts[s] == 0 {
			continue // only runs that programs started are ever in it
		}
		all = append(all, stateCount{Name: string(s), Words: words(s), Tone: tone(s), N: counts[s], URL: "/ui/runs?state=" + string(s)})
	}
	return all
}

// sum puts all into one sentence: the worst comes first.
func (v healthView) sum() (tone, text string) {
	bad, weak, part := 0, 0, 0
	for _, c := range v.Connectors {
		switch {
		case c.Tone == "bad":
			bad++
		case c.State == connectors.StateFailing:
			weak++
		case c.Tone == "warn":
			part++
		}
	}
	lagging := 0
	for _, s := range v.Sinks {
		if s.Error != "" {
			lagging++
		}
	}
	down := 0
	for _, s := range v.Servers {
		if s.Tone == "warn" {
			down++
		}
	}
	gone := v.Node != nil && v.Node.Err != ""
	full := v.Disk != nil && v.Disk.Tone == "bad"
	failed := v.Status.Outbox[claybot.SendFailed]
	switch {
	case gone:
		return "bad", sentence(v.Node.Err)
	case full:
		return "bad", "The disk is almost full."
	case len(v.Findings) > 0 && v.Findings[0].Tone == "bad":
		return "bad", v.Findings[0].Text
	case bad > 0:
		return "bad", plural(bad, "connector has stopped.", "connectors have stopped.")
	case v.Model.Tone == "bad":
		return "bad", "The model does not answer."
	case slices.ContainsFunc(v.Settings, func(s overview.SettingStatus) bool { return s.Off }):
		return "bad", "A setting is bad, and what it belongs to is off."
	case len(v.Findings) > 0:
		return "warn", v.Findings[0].Text
	case weak > 0:
		return "warn", plural(weak, "connector has trouble and tries again.", "connectors have trouble and try again.")
	case v.Model.Tone == "warn":
		return "warn", "No model is configured."
	case part > 0:
		return "warn", plural(part, "connector works in part.", "connectors work in part.")
	case down > 0:
		return "warn", plural(down, "MCP server is down: agents do without its tools.", "MCP servers are down: agents do without their tools.")
	case lagging > 0:
		return "warn", plural(lagging, "receiver of events does not take them.", "receivers of events do not take them.")
	case failed > 0:
		return "warn", plural(failed, "message could not be delivered.", "messages could not be delivered.")
	}
	if v.Model.Tone == "calm" {
		return "good", "Everything works, as far as it was tried: the model was not asked yet."
	}
	return "good", "Everything works."
}

// bytesOf writes a size with two or three digits.
func bytesOf(n int64) string {
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB"}
	v, i := float64(n), 0
	for v >= 999.5 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if i == 0 || v >= 99.5 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}
