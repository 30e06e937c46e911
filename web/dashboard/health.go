package dashboard

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/web"
)

// healthPages serves the health of the installation and the trace of messages.
type healthPages struct {
	*pages
	system web.System
}

func (b *healthPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/health", "health", b.health),
		b.part("/ui/health/now", "health", "health-now", b.health),
		{Pattern: "GET /ui/live", Scope: web.Read, Handler: http.HandlerFunc(b.live)},
		b.screen("/ui/members", "members", b.members),
		b.part("/ui/members/now", "members", "members-now", b.members),
		b.screen("/ui/why", "why", b.whyOf),
		b.part("/ui/why/stories", "why", "stories", b.whyOf),
	}
}

// A healthView is the health of the installation.
type healthView struct {
	viewer
	overview.Status
	Tone, Verdict string // of all together
	Findings      []finding
}

// A finding is something that needs attention, with the next step and the code that the status has for it.
type finding struct{ Tone, Text, Next, Code string }

// Advice are the findings about parts with a section of their own, or without any, and what to do.
func (v healthView) Advice() []overview.Finding { return adviceOf(v.Status) }

// adviceOf leaves out what findingsOf says, and the settings and workflows, which have a list.
func adviceOf(s overview.Status) []overview.Finding {
	return slices.DeleteFunc(slices.Clone(s.Findings), func(f overview.Finding) bool {
		said := f.What == "workflows" || strings.HasPrefix(f.What, "configuration ") || f.Code == "agent-unusable"
		return said || slices.Contains([]string{texts.PartCheck, texts.PartMember, texts.PartConfiguration}, f.Part.Kind)
	})
}

func (v healthView) ByState() []stateCount    { return runCounts(v.Status.Runs) }
func (v healthView) Deliveries() []stateCount { return outboxCounts(v.Status.Outbox) }

func (b *healthPages) health(r *http.Request) (any, error) {
	s, err := b.system.Status(r.Context())
	return viewHealth(viewerOf(r), s), err
}

func viewHealth(who viewer, s overview.Status) healthView {
	found := findingsOf(s)
	sum := verdict(s, found)
	return healthView{viewer: who, Status: s, Tone: sum.Tone, Verdict: sum.Text, Findings: found}
}

// when is a finding if cond holds, counted one if n is not 0.
func when(cond bool, tone, text string) []finding {
	if !cond {
		return nil
	}
	return []finding{{Tone: tone, Text: text}}
}

func counted(n int, tone, one, more string) []finding { return when(n > 0, tone, plural(n, one, more)) }

// findingsOf lists what needs attention in the daemon itself, the worst first.
func findingsOf(s overview.Status) []finding {
	advised := func(what string, all []finding) []finding {
		for i := range all {
			if n := slices.IndexFunc(s.Findings, func(f overview.Finding) bool { return f.What == what }); n >= 0 {
				all[i].Next, all[i].Code = s.Findings[n].Next, s.Findings[n].Code
			}
		}
		return all
	}
	all := advised("unwell", when(s.Unwell != "", "bad", fmt.Sprintf(healthUnwell, strings.TrimSuffix(s.Unwell, "."))))
	all = append(all, when(s.Parked != nil && s.Parked.Full, "bad", healthParkedFull)...)
	for _, name := range slices.Sorted(maps.Keys(s.Checks)) {
		c := s.Checks[name]
		all = append(all, advised("check "+name, when(c.Problem, "bad", sentence(fmt.Sprintf(healthCheck, name, c.Text))))...)
	}
	all = append(all, advised("faulty", counted(s.Faulty, "warn", healthFaulty, healthFaultyMany))...)
	if p := s.Parked; p != nil {
		all = append(all, counted(p.Messages, "warn", healthParked, healthParkedMany)...)
	}
	if x := s.Start; x != nil {
		often := ""
		if x.Unclean > 1 {
			often = fmt.Sprintf(healthOften, x.Unclean)
		}
		all = append(all, finding{Tone: "warn", Text: fmt.Sprintf(healthUnclean, often, plural(x.Waiting, "agent is", "agents are"))})
	}
	return all
}

// verdict summarizes a status by its worst finding.
func verdict(s overview.Status, found []finding) finding {
	states := make(map[string]int)
	for _, c := range s.Connectors {
		key := markOf(c).Tone
		if key == "warn" && c.State == connectors.StateFailing {
			key = connectors.StateFailing
		}
		states[key]++
	}
	lagging, down := 0, 0
	for _, x := range s.Sinks {
		if x.Error != "" {
			lagging++
		}
	}
	for _, x := range s.Servers {
		if markOf(x).Tone == "warn" {
			down++
		}
	}
	advice, halted := adviceOf(s), 0
	for _, f := range advice {
		if f.Code == "node-stopped" {
			halted++
		}
	}
	var lost []finding
	if s.Node != nil {
		lost = when(s.Node.Err != "", "bad", sentence(s.Node.Err))
	}
	grave := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.Tone != "bad" })
	model := markOf(s.Model).Tone
	all := slices.Concat(
		lost,
		when(s.Disk != nil && markOf(*s.Disk).Tone == "bad", "bad", healthDisk),
		grave,
		counted(states["bad"], "bad", healthStopped, healthStoppedMany),
		when(model == "bad", "bad", healthModel),
		when(slices.ContainsFunc(s.Settings, func(x overview.SettingStatus) bool { return x.Off }), "bad", healthSetting),
		found,
		counted(states[connectors.StateFailing], "warn", healthFailing, healthFailingMany),
		when(model == "warn", "warn", healthNoModel),
		counted(states["warn"], "warn", healthPartly, healthPartlyMany),
		counted(down, "warn", healthServer, healthServers),
		counted(lagging, "warn", healthRelay, healthRelays),
		counted(len(advice)-halted, "warn", healthPart, healthParts),
		counted(halted, "warn", healthHalted, healthHaltedMany),
		counted(s.Outbox[claybot.SendFailed], "warn", healthLost, healthLostMany),
		when(model == "calm", "good", healthUntried),
		when(true, "good", healthGood),
	)
	return all[0]
}

// problemOf describes the problem of a connector, in sentences.
func problemOf(c overview.ConnectorStatus) string {
	if c.Held == "" {
		return c.Err
	}
	return strings.TrimSpace(sentence(c.Held) + " " + c.Err)
}

func runCounts(counts map[claybot.RunState]int) []stateCount {
	all := make([]stateCount, 0, len(runStates))
	for _, s := range []claybot.RunState{
		claybot.RunPending, claybot.RunRunning, claybot.RunAwaiting, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled,
	} {
		if s != claybot.RunPending || counts[s] > 0 { // only runs that programs start are ever pending
			all = append(all, stateCount{Name: string(s), mark: mark{tone(s), words(s)}, N: counts[s], URL: "/ui/runs?state=" + string(s)})
		}
	}
	return all
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

// skewNoted is the clock skew from which the page reports it.
const skewNoted = time.Second

// A membersView lists the cluster members.
type membersView struct {
	viewer
	Tone, Verdict string
	Nodes         []memberView
}

// A memberView is one cluster member. Doubt is what is wrong with its settings.
type memberView struct {
	storage.Member
	Doubt string
}

// Clock is how far the clock of the member is off.
func (n memberView) Clock() mark {
	switch skew := time.Duration(n.Skew) * time.Millisecond; {
	case skew >= skewNoted:
		return mark{"warn", fmt.Sprintf("%v ahead", skew.Round(100*time.Millisecond))}
	case skew <= -skewNoted:
		return mark{"warn", fmt.Sprintf("%v behind", -skew.Round(100*time.Millisecond))}
	}
	return mark{"calm", "in sync"}
}

func (b *healthPages) members(r *http.Request) (any, error) {
	all, err := b.system.Members(r.Context())
	return viewMembers(viewerOf(r), all), err
}

func viewMembers(who viewer, all []storage.Member) membersView {
	v := membersView{viewer: who, Tone: "good"}
	live, versions, doubts := 0, make(map[string]bool), cluster.Doubts(all)
	twice, off, lease, leases := "", "", time.Duration(0), false
	for _, n := range all {
		x := memberView{n, doubts[n.ID]}
		v.Nodes = append(v.Nodes, x)
		if !n.There() {
			continue
		}
		live++
		versions[n.Version] = true
		if slices.ContainsFunc(all, func(o storage.Member) bool { return o.There() && cluster.Namesakes(n, o) }) {
			twice = n.Name
		}
		leases = leases || n.Lease() > 0 && lease > 0 && n.Lease() != lease
		lease = max(lease, n.Lease())
		if x.Clock().Tone == "warn" {
			off = n.Name
		}
	}
	parts := slices.Concat(
		when(true, "good", plural(live, "member is live.", "members are live.")),
		when(twice != "", "warn", fmt.Sprintf(membersTwice, twice)),
		when(leases, "warn", membersLeases),
		when(len(versions) > 1, "warn", membersVersions),
		when(off != "", "warn", fmt.Sprintf(membersClock, off)),
	)
	if live == 0 { // the member that answers is one of them
		parts = when(true, "bad", membersNone)
	}
	texts := make([]string, len(parts))
	for i, f := range parts {
		texts[i], v.Tone = f.Text, f.Tone
	}
	v.Verdict = strings.Join(texts, " ")
	return v
}

const (
	// liveEvery is the minimum time between two change events.
	liveEvery = 500 * time.Millisecond
	livePing  = 15 * time.Second
	// liveWrite is the deadline of one write to a reader.
	liveWrite = 10 * time.Second
)

// live streams change events to a page, at once and then at most twice a second;
// the page fetches what changed. It disconnects a stalled reader.
func (b *healthPages) live(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies
	if r.Method == http.MethodHead {
		return // matches the same pattern, and must not stay open
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // the server's deadline is for ordinary requests
	say := func(frame string) bool {
		_ = rc.SetWriteDeadline(time.Now().Add(liveWrite)) // likewise
		_, err := io.WriteString(w, frame)
		return err == nil && rc.Flush() == nil
	}
	const changed = "event: changed\ndata: {}\n\n"
	// The first event covers changes between the load of the page and this
	// stream.
	next := b.system.Changed()
	if !say("retry: 1000\n" + changed) {
		return
	}
	ping := time.NewTicker(livePing)
	defer ping.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ping.C:
			if !say(": ping\n\n") {
				return
			}
			continue
		case <-next:
		}
		next = b.system.Changed() // before the event, so that later changes are seen
		if !say(changed) {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(liveEvery):
		}
	}
}
