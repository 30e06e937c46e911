package dashboard

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/web"
)

var noDocker = overview.Finding{What: "workspaces docker", Level: overview.LevelProblem, Code: "docker-unusable", Text: "Docker does not answer", Next: "start Docker", Part: texts.Part{Kind: texts.PartWorkspace, Name: "docker"}}

// The page has the cause, the code and the next step of a finding.
func TestHealthHasNextSteps(t *testing.T) {
	html := rendered(t, &pages{views: sync.OnceValue(readViews)}, pageCase{"health", "main", viewHealth(viewer{web.Read}, overview.Status{Findings: []overview.Finding{noDocker}})})
	for _, want := range []string{"What to do", "workspaces docker", "Docker does not answer", "Next step: start Docker", "docker-unusable"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// What operators have stopped is on the page, as in the status and the doctor, and so is what has no part; the page says
// once what it has a list of.
func TestHealthOfStoppedNodes(t *testing.T) {
	halted := overview.Finding{What: "profile default", Level: overview.LevelWarning, Code: "node-stopped", Text: "stopped by ann at 09:00", Next: "claybot nodes start profile/default"}
	skills := overview.Finding{What: "skills", Level: overview.LevelWarning, Code: "skills-missing", Text: "there is no folder skills"}
	listed := []overview.Finding{{What: "workflows", Level: overview.LevelProblem, Code: "workflow-refused", Text: "said in the list"}, {What: "faulty agent", Level: overview.LevelWarning, Code: "agent-unusable", Text: "said above"}}
	model := overview.OutsideStatus{Model: overview.ModelStatus{Name: "m", LastOK: time.Unix(1, 0)}}
	for want, found := range map[string][]overview.Finding{
		"1 part is stopped by an operator; see below.":   {halted},
		"2 parts are stopped by an operator; see below.": append(listed, halted, halted),
		"1 part needs attention; see below.":             {halted, skills},
	} {
		v := viewHealth(viewer{web.Read}, overview.Status{OutsideStatus: model, Findings: found})
		html := rendered(t, &pages{views: sync.OnceValue(readViews)}, pageCase{"health", "main", v})
		if v.Tone != "warn" || v.Verdict != want {
			t.Errorf("%s %q, want %q", v.Tone, v.Verdict, want)
		}
		for _, f := range found {
			if said := strings.Contains(html, f.Text) && strings.Contains(html, f.Code); said != !slices.Contains(listed, f) {
				t.Errorf("the page says %q: %v", f.Text, said)
			}
		}
	}
}

// The pages of agents say what stops an agent, or switches it off, as claybot agents does.
func TestHinderedAgents(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	for _, tt := range []struct {
		state, stopped, off, want string
	}{
		{"idle", "", "", ">idle<"},
		{"idle", "model/m: stopped by ann", "", ">stopped by an operator<"},
		{"waiting", "model/m: stopped by ann", "max_steps is no number", ">stopped by an operator<"},
		{"idle", "", "max_steps is no number", ">off, needs action<"},
		{"RUNNING", "model/m: stopped by ann", "", ">running<"},
	} {
		row := agentRow{AgentView: web.AgentView{ID: "a", State: tt.state, Stopped: tt.stopped, Off: tt.off}}
		for _, c := range []pageCase{{"agents", "rows", agentsView{Rows: []agentRow{row}}}, {"agent", "top", agentView{agentRow: row}}} {
			html := rendered(t, b, c)
			if !strings.Contains(html, tt.want) || !strings.Contains(html, row.Hindrance()) {
				t.Errorf("%s %q %q: %s", tt.state, tt.stopped, tt.off, html)
			}
		}
	}
}

// Health is not well while an MCP server is down, and claims nothing about a model
// that was never asked.
func TestHealthOfServers(t *testing.T) {
	live := []overview.ConnectorStatus{{Name: "web", Health: connectors.Health{State: connectors.StateLive}}}
	answers := overview.ModelStatus{Name: "m", LastOK: time.Unix(1, 0)}
	up := overview.ServerStatus{Name: "files", OK: true, State: "connected"}
	for _, tt := range []struct {
		name    string
		status  overview.Status
		tone    string
		verdict string
	}{
		{"all work", overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers, Servers: []overview.ServerStatus{up}}}, "good", "All systems are working."},
		{"it starts", overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers, Servers: []overview.ServerStatus{{Name: "files", State: "starting"}}}}, "good", "All systems are working."},
		{
			"one is down",
			overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers, Servers: []overview.ServerStatus{up, {Name: "web", State: "waiting", Err: "connection refused"}}}},
			"warn", "1 MCP server is down: agents work without its tools.",
		},
		{
			"two need an operator",
			overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers, Servers: []overview.ServerStatus{{Name: "a", State: "login"}, {Name: "b", State: "refused"}}}},
			"warn", "2 MCP servers are down: agents work without their tools.",
		},
		{"a member that is unwell", overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers}, FaultStatus: overview.FaultStatus{Unwell: "too many open files", Faulty: 1}}, "bad", "claybot takes less work: too many open files."},
		{"a full parking table", overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers}, FaultStatus: overview.FaultStatus{Parked: &overview.ParkedStatus{Full: true}}}, "bad", "The parking table is full: further messages wait at their source."},
		{
			"a damaged database",
			overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers, Checks: map[string]overview.CheckStatus{"copy": {Text: "well"}, "database": {Text: "page 7 is damaged", Problem: true}}}, FaultStatus: overview.FaultStatus{Faulty: 2}},
			"bad", "Check of the database: page 7 is damaged.",
		},
		{"a faulty agent", overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers}, FaultStatus: overview.FaultStatus{Faulty: 1}}, "warn", "1 agent is unavailable; see the log."},
		{
			"parked messages",
			overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers}, FaultStatus: overview.FaultStatus{Parked: &overview.ParkedStatus{ParkedTotals: storage.ParkedTotals{Messages: 2, Agents: 1}}}},
			"warn", "2 messages are parked until their agents are available.",
		},
		{
			"back after a crash",
			overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers}, Start: &overview.StartStatus{Unclean: 2, Waiting: 1}},
			"warn", "claybot crashed 2 times in a row and resumes its runs a few at a time; 1 agent is waiting.",
		},
		{
			"back after one crash",
			overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers}, Start: &overview.StartStatus{Unclean: 1, Waiting: 2}},
			"warn", "claybot crashed and resumes its runs a few at a time; 2 agents are waiting.",
		},
		{
			"a part without a section",
			overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: answers}, Findings: []overview.Finding{noDocker, {What: "check copy", Part: texts.Part{Kind: texts.PartCheck}}}},
			"warn", "1 part needs attention; see below.",
		},
		{"a model that was not asked", overview.Status{Connectors: live, OutsideStatus: overview.OutsideStatus{Model: overview.ModelStatus{Name: "m"}}}, "good", "No problems found; the model has not been used yet."},
	} {
		if v := viewHealth(viewer{}, tt.status); v.Tone != tt.tone || v.Verdict != tt.verdict {
			t.Errorf("%s: %s %q, want %s %q", tt.name, v.Tone, v.Verdict, tt.tone, tt.verdict)
		}
	}
}

// What a message says that has files alone.
func TestWordsOfFiles(t *testing.T) {
	voice := claybot.FileReference{Kind: claybot.FileVoice, Seconds: 12}
	photo := claybot.FileReference{Kind: claybot.FilePhoto, Name: "cat.jpg"}
	for want, m := range map[string]claybot.AgentMessage{
		"[voice message, 0:12]":                                       {Files: []claybot.FileReference{voice}},
		"[voice message, 0:12; photo cat.jpg]":                        {Text: " ", Files: []claybot.FileReference{voice, photo}},
		"[photo cat.jpg; photo cat.jpg; photo cat.jpg; 2 more files]": {Files: []claybot.FileReference{photo, photo, photo, photo, photo}},
		"look": {Text: "look", Files: []claybot.FileReference{photo}},
		"":     {},
	} {
		if got := wordsOf(m); got != want {
			t.Errorf("%+v says %q, want %q", m, got, want)
		}
	}
}

// What the page lists of the daemon, its settings and a node has the next step and the code of the status.
func TestCausesHaveCodes(t *testing.T) {
	views := &pages{views: sync.OnceValue(readViews)}
	status := overview.Status{
		FaultStatus: overview.FaultStatus{Unwell: "memory is short", Faulty: 1},
		OutsideStatus: overview.OutsideStatus{
			Checks:   map[string]overview.CheckStatus{"copy": {Text: "failed", Problem: true}},
			Settings: []overview.SettingStatus{{Text: "bad", Next: "step-setting", Code: "code-setting", Off: true}},
		},
		Findings: []overview.Finding{
			{What: "unwell", Next: "step-unwell", Code: "code-unwell", Part: texts.Part{Kind: texts.PartMember}},
			{What: "check copy", Next: "step-check", Code: "code-check", Part: texts.Part{Kind: texts.PartCheck}},
			{What: "faulty", Next: "step-faulty", Code: "agent-unusable"},
			{What: "disk", Next: "step-disk", Code: "disk-low", Part: texts.Part{Kind: texts.PartDisk}},
		},
	}
	node := nodes.View{Key: nodes.Key{Kind: nodes.MCP, Name: "notes"}, State: nodes.Failed, Text: "gone", Next: "step-node", Code: "mcp-failing"}
	health := rendered(t, views, pageCase{"health", "main", viewHealth(viewer{web.Read}, status)})
	for html, want := range map[string][]string{
		health: {"step-unwell", "code-unwell", "step-check", "code-check", "step-faulty", "agent-unusable", "step-disk", "disk-low", "step-setting", "code-setting"},
		rendered(t, views, pageCase{"node", "main", nodePage{viewer: viewer{web.Read}, nodeView: nodeView{View: node}}}): {"gone", "step-node", "mcp-failing"},
		rendered(t, views, pageCase{"nodes", "main", viewNodes(viewer{web.Read}, []nodes.View{node}, nil)}):              {"gone", "step-node", "mcp-failing"},
	} {
		for _, piece := range want {
			if strings.Count(html, piece) != 1 {
				t.Errorf("the page has %q %d times", piece, strings.Count(html, piece))
			}
		}
	}
}
