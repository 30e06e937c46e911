package dashboard

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/web"
)

// hostileTexts would do harm if anything but text was made of them.
var hostileTexts = []string{
	`<script>window.hacked=1</script>`,
	`<img src=x onerror="window.hacked=1">`,
	`"><iframe srcdoc="<script>parent.hacked=1</script>">`,
	`' onmouseover='window.hacked=1`,
	`javascript:window.hacked=1`,
	`{{.}}</textarea></template><svg/onload=window.hacked=1>`,
	"\x1b]0;owned\x07\x1b[31mred\u202egnp.exe\u2066\x00",
	"broken \xff\xfe utf-8",
	strings.Repeat("x", long()),
	strings.Repeat("<b>", long()/3),
}

// long is of how many bytes long texts are: more than any page shows of one, and
// with the race detector, which has nothing to find in templates, not much more.
func long() int {
	if raced {
		return textLimit + 1000
	}
	return 100_000
}

// A pageCase is a page with its view.
type pageCase struct {
	page, part string
	view       any
}

// casesOf are the pages of this half of the dashboard with one text wherever
// text can stand, for a viewer.
func casesOf(x string, who viewer) []pageCase {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	spec := connectors.TaskSpec{Name: x, Description: x, Schedule: x, Timezone: x, Prompt: x, Misfire: x, Owner: x, Route: x, Agent: x}
	firing := connectors.Firing{Planned: at, Instant: x, Attempt: 2, State: x, Reason: x, Run: claybot.RunID(x), Cost: 5}
	task := connectors.Task{TaskSpec: spec, Slug: x, UID: x, Enabled: true, Paused: x, Gate: x, Next: []time.Time{at}, Last: &firing}
	paused := viewTask(task, "k")
	task.Paused = ""
	on := viewTask(task, "k")
	heartbeat := connectors.HeartbeatTask{ID: x, Title: x, Every: x, ActiveHours: x, Enabled: true, Prompt: x, Gate: x, LastRun: at, Next: at, Stopped: x}
	problems := []connectors.Problem{{File: x, Line: 3, Text: x}}
	route := claybot.Route{Connector: x, ChannelID: x, UserID: x, ThreadID: x}
	out := claybot.Outgoing{
		ID: x, Kind: claybot.OutgoingKind(x), Run: claybot.RunID(x), Message: claybot.MessageID(x), Route: route, Text: x, Part: 1, Parts: 2,
		State: claybot.SendFailed, Attempts: 3, Receipt: x, Cause: x, At: 5, Due: 6,
	}
	waiting := out
	waiting.State = claybot.SendWaiting
	sums := []storage.Spent{{Day: x, Agent: claybot.AgentID(x), Owner: x, Model: x, Type: claybot.AgentType(x), Usage: claybot.Usage{Input: 5, Estimated: true}}}
	usage := usageView{
		viewer: who, period: periodOf("7", at), By: storage.ByOwner, ByWords: "User", Days: tabulate(storage.ByDay, sums, sums, nil),
		Split: tabulate(storage.ByOwner, sums, sums, nil), Durations: []storage.Latency{{Day: x, What: x}, {Day: "d", What: storage.LatencyModel + x}},
	}
	usage.links()
	agents := usage
	agents.Split = tabulate(storage.ByAgent, sums, sums, nil)
	status := overview.Status{
		Version: x, Uptime: x, StoreStatus: overview.StoreStatus{Inbox: overview.InboxStatus{Waiting: 3, Oldest: 7}},
		Connectors:    []overview.ConnectorStatus{{Name: x, Health: connectors.Health{State: x, Err: x, LastOK: at}}, {Name: x, Health: connectors.Health{State: connectors.StateStopped, Err: x}}},
		OutsideStatus: overview.OutsideStatus{Model: overview.ModelStatus{Name: x, Err: x}, Disk: &overview.DiskStatus{Free: 5, Total: 10}},
	}
	status.Findings = []overview.Finding{{What: x, Level: x, Code: x, Text: x, Next: x, Part: texts.Part{Kind: texts.PartModel, Name: x}}}
	status.Sinks = []runs.SinkHealth{{Name: x, Error: x, Backlog: 3, Oldest: 7}, {Name: x, Success: 5}}
	access := viewAccess(who,
		[]storage.Pairing{{Code: x, Connector: x, ChannelID: x, UserID: x, Name: x, At: 1}},
		[]storage.Grant{{Connector: x, Subject: x, Name: x, At: 1}}, status, 1)
	access.People = []overview.Person{{
		Name: x, Role: storage.Role(x), Language: x, Timezone: x, LastAt: 5,
		Identities: []overview.Identity{{ID: x, Name: x, Access: people.Admission(x), Since: 1}},
		Agents:     []overview.PersonAgent{{ID: claybot.AgentID(x), Channel: x, Place: x}}, Budgets: []overview.PersonBudget{{Name: x, Unit: storage.Unit(x), Limit: 5}},
	}}
	story := overview.Story{
		Receipt: storage.Receipt{
			Message: claybot.AgentMessage{ID: claybot.MessageID(x), Type: claybot.MessageUser, Text: x, From: claybot.Sender{Name: x}, At: 1},
			Agent:   claybot.AgentID(x), Run: &claybot.Run{ID: claybot.RunID(x), State: claybot.RunFailed, Error: &claybot.RunError{Code: x, Text: x}},
			Replies: []claybot.Outgoing{out},
		},
		Silence: x, Steps: []overview.Step{{At: 1, What: x, Text: x, Run: claybot.RunID(x), MS: 3}, {At: 9000, What: "run", Text: x, Run: claybot.RunID(x)}},
	}
	silent := story
	silent.Receipt.Replies = nil
	short := x[:min(len(x), 3000)] // they show it many times, all of it
	work, confirm := hostileWork(short, who), hostileApproval(short, who)
	waits := overview.Story{Receipt: storage.Receipt{Busy: claybot.RunID(x), Ahead: 2}}
	return []pageCase{
		{"run", "work", work},
		{"runs", "waiting", waitingView{[]asked{confirm}, 3}},
		{"schedule", "main", scheduleView{
			viewer: who, Tasks: []taskView{paused, on}, Problems: problems, Heartbeats: []heartbeatView{viewHeartbeat(heartbeat, "k")}, HeartbeatProblems: problems,
		}},
		{"schedule", "main", scheduleView{viewer: who, TasksOff: x, HeartbeatsOff: x}},
		{"schedule", "main", scheduleView{viewer: who, Task: &paused, Ledger: []firingView{viewFiring(firing)}, Limit: 25, More: 100}},
		{"schedule", "instants", task.Next},
		{"deliveries", "main", deliveriesView{
			viewer: who, deliveryFilter: deliveryFilter{Show: "failed", Connector: x, Channel: x}, Rows: []deliveryView{viewDelivery(out), viewDelivery(waiting)},
			Counts: outboxCounts(nil), Place: x, Older: "/ui/deliveries?before=1", Newest: "/ui/deliveries",
		}},
		{"usage", "main", usage},
		{"usage", "usage-now", agents},
		{"usage", "budgets", budgetsView{viewer: who, Rows: []budgetRow{{storage.Budget{Key: x, Name: x, Period: x, Unit: storage.Unit(x), Hard: true, Limit: 5, Spent: 9, Unpriced: 2}}}, More: 2}},
		{"tools", "main", hostileTools(short, who)},
		{"agent", "bench", hostileBench(short, who)},
		{"agent", "agent-skills", hostileTools(short, who).Skills},
		{"notes", "main", notesView{viewer: who, Scope: x, Words: x, Query: x, Rows: []foundNote{{hostileNote(short), short}}, More: 3, Fresh: "/ui/notes/rows"}},
		{"note", "main", noteView{viewer: who, noteRow: hostileNote(x), Words: short, There: true, Versions: []noteRow{hostileNote(short), hostileNote(short)}, Shown: new(hostileNote(x)), Self: "/ui", All: "/ui"}},
		{"run", "deliveries", sentView{[]deliveryRow{{claybot.Outgoing{ID: x, Text: x, Agent: claybot.AgentID(x), File: &claybot.FileReference{ID: x, Name: x, MIMEType: x}}, x}}, []noteRow{hostileNote(short)}}},
		{"run", "items", timelineView{Items: []item{{Key: short, Title: short, Args: short, Edited: short, Out: short, Tainted: true}}}},
		{"health", "main", viewHealth(who, status)},
		{"nodes", "main", viewNodes(who, []nodes.View{
			{Key: nodes.Key{Kind: nodes.MCP, Name: x}, Type: x, State: nodes.Failed, Text: x, Uses: []nodes.Key{{Kind: nodes.Model, Name: x}}, Can: []string{nodes.Stop, nodes.Test}}, {Key: nodes.Key{Kind: nodes.Model, Name: x}, State: x},
		}, []web.NodeLink{{From: nodes.Key{Kind: nodes.MCP, Name: x}, To: nodes.Key{Kind: nodes.Model, Name: x}}})},
		{"flows", "main", flowsView{viewer: who, Flows: []flowRow{{hostileFlow(x, who).FlowView, []runRow{{Run: claybot.Run{ID: claybot.RunID(x), State: claybot.RunState(x)}, Name: x}}}}, Faults: []web.FlowFault{{File: x, Line: 3, Key: x, Text: x, Near: x}}}},
		{"flow", "main", hostileFlow(short, who)},
		{"flow-edit", "main", hostileDraft(short, who)},
		{"flow-edit", "editor", hostileDraft(short, who)},
		{"setup", "main", setupView{viewer: who, Step: x, Steps: []setupMark{{x, x, true, true}}, Next: setupMark{Name: x, Title: x}}},
		{"setup", "main", setupView{viewer: who, Elsewhere: &web.Problem{Message: x, Fix: x}}},
		{"setup", "setup-now", hostileSetup(web.SetupModel, x, who)},
		{"setup", "setup-now", hostileSetup(web.SetupSlack, x, who)},
		{"setup", "setup-now", hostileSetup(web.SetupBudget, x, who)},
		{"setup", "setup-models", setupModels{who, web.SetupModels{Names: []string{short, "a"}, Usual: short}}},
		{"setup", "setup-models", setupModels{who, web.SetupModels{Usual: x}}},
		{"members", "main", viewMembers(who, []storage.Member{
			{ID: x, Name: x, Version: x, State: storage.MemberLive, Working: 5, Skew: 9000, Claims: []string{x, x}, Dests: 2, Seen: 5}, {ID: "b", Name: x, State: storage.MemberState(x)},
		})},
		{"access", "main", access},
		{"why", "main", whyView{viewer: who, Ref: x, Asked: true, Stories: []storyView{viewStory(story), viewStory(silent), viewStory(waits)}}},
		{"why", "main", whyView{viewer: who, Ref: x, Asked: true}},
	}
}

// hostileFlow is a workflow with a run in which everything happened.
func hostileFlow(x string, who viewer) flowView {
	run := claybot.Run{ID: claybot.RunID(x), State: claybot.RunState(x), Error: &claybot.RunError{Code: x, Text: x}, Output: x}
	v := flowView{viewer: who, Older: true, Picked: true, Run: &runRow{Run: run, Name: x}, Runs: []runRow{{Run: run, Name: x}}, Questions: []asked{hostileApproval(x, who)}, Key: x}
	v.FlowDetail = web.FlowDetail{
		FlowView: web.FlowView{Name: x, Description: x, Owner: x, Version: x, Triggers: []web.FlowTrigger{{Name: x, What: x}}}, Start: x + "1",
		Steps: []web.FlowNode{{Name: x + "1", Kind: x, Note: x, Next: []string{x + "2", runs.End}, Text: x}, {Name: x + "2", Kind: x, Next: []string{runs.End}}},
	}
	visit := &stepVisit{
		At: 5, MS: 7, Next: x, Reason: x, Out: x, Tainted: true, Usage: &claybot.Usage{Input: 5}, Failed: &stepFailure{label(x), label(x), label(x)},
		Calls: []stepCall{{ToolCall: claybot.ToolCall{ID: x, Name: x, Args: x}, Ended: true, Out: x, MS: 3}}, Asked: []stepAsked{{x, x, x, x}}, Given: []stepGiven{{x, x}},
	}
	seen := seenFlow{
		graph:  runs.GraphView{Current: x + "1", Nodes: []runs.NodeSeen{{Node: x + "1", Visits: 2, State: runs.NodeFailed}}, Edges: []runs.EdgeSeen{{From: x + "1", To: x + "2", Times: 1}}},
		visits: map[string][]*stepVisit{x + "1": {visit}}, failed: x + "1", entry: x,
	}
	v.Steps = viewFlowSteps(&v, seen)
	v.Chosen = &v.Steps[1]
	v.Chosen.Chosen, v.Chosen.Children = true, []childView{{claybot.AgentID(x), x, false, &run}}
	for i := range v.Steps {
		v.Steps[i].URL = v.choose(v.Steps[i].Name)
	}
	v.Graph = drawFlow(&v, seen)
	return v
}

// hostileSetup is a step of the guide in which everything is wrong and everything is there.
func hostileSetup(name, x string, who viewer) setupNow {
	return viewSetup(who, web.SetupStep{
		Name: name, Version: x, Wrong: x, Notes: []web.SetupNote{{Good: true, Text: x}, {Text: x}}, Has: []string{x, "bot_token"}, Value: x, Options: []string{"a", "b"}, Link: x, Ollama: x, Providers: []web.SetupProvider{{Name: x, Title: x, Example: x}},
		Pairing: &web.SetupPairing{
			Operators: []string{x}, Wrong: x, Invitation: &web.Invitation{Connector: x, URL: x, Code: x, Expires: 5}, Picture: web.SetupPicture{Size: 9, Path: "M1 1h1v1h-1z"},
			People: []storage.Grant{{Connector: x, Subject: x, Name: x}},
		},
	})
}

func hostileNote(x string) noteRow {
	return noteRow{Memory: storage.Memory{Path: x, Title: x, Text: x, MemoryChange: storage.MemoryChange{
		Agent: claybot.AgentID(x), Run: claybot.RunID(x), Call: x, By: x, Tainted: true, At: 5,
	}}, Scope: x, Version: 3}
}

func hostileTools(x string, who viewer) toolsView {
	return toolsView{
		viewer: who,
		Tools:  []toolRow{{web.ToolView{Name: x, Description: x, Source: x, Effect: x, Class: x, Asks: x, Timeout: time.Second}}},
		Servers: []serverRow{{
			web.ServerView{Name: x, Transport: x, State: x, Problem: x, Tools: []string{x}, Login: x, Restarts: 2}, []offTool{{x, x}, {x + "2", x}},
		}},
		Skills: []web.SkillView{{
			Name: x, Description: x, State: "changed", Problem: x, Hash: x, Tools: []string{x}, AllowedBy: x, AllowedAt: 5,
			Added: []string{x}, Changed: []string{x}, Removed: []string{x}, NewTools: []string{x},
		}},
		Rooms: hostileBench(x, who).Rooms,
	}
}

func hostileBench(x string, who viewer) benchView {
	return benchView{
		viewer: who, ID: claybot.AgentID(x), Owner: x, Notes: []noteRow{hostileNote(x)}, More: 2,
		Rooms: []roomRow{{who, web.WorkspaceView{Key: x, Agent: claybot.AgentID(x), Provider: x, ID: x, Image: x, Platform: x, State: x, Problem: x, Expires: 5}, domID(x)}},
		Tools: []toolRow{{web.ToolView{Name: x, Description: x, Source: x, Effect: x, Class: x, Asks: x}}},
	}
}

// hostileApproval is a question whether something may be done.
func hostileApproval(x string, who viewer) asked {
	return asked{who, storage.OpenQuestion{Question: claybot.Question{
		ID: x, Text: x, Type: claybot.QuestionConfirm, Tool: x, Approvers: []string{x, x}, Default: x, Expires: 5,
	}, Run: claybot.RunID(x), Agent: claybot.AgentID(x)}, x}
}

// hostileWork is a run that has planned, explored and done everything.
func hostileWork(x string, who viewer) workView {
	args, _ := json.Marshal(map[string]string{x: x}) // strings always marshal
	steps := make([]planStep, 0, 3)
	for i, status := range []string{runs.StepWaiting, runs.StepOK, x} {
		steps = append(steps, planStep{runs.StepProgress{
			PlannedStep: runs.PlannedStep{ID: fmt.Sprint(x, i), Tool: x, What: x, Args: args, Risk: x, DependsOn: []string{x, x}, CostMicroUSD: 5},
			Status:      status, Attempts: 2, Error: x, Question: x,
		}, x})
	}
	call := claybot.ToolCall{ID: x, Name: x, Args: x}
	return workView{
		viewer: who, ID: claybot.RunID(x), Agent: claybot.AgentID(x), Undoes: claybot.RunID(x),
		Plan: &planView{Title: x, Mode: x, Diff: x, Error: x, Steps: steps, Done: 1, Cost: 3},
		Graph: viewGraph(
			runs.Shape{Name: x, Start: x + "1", Edges: map[string][]string{x + "1": {x + "2", runs.End}, x + "2": {x + "1", runs.End}}},
			runs.GraphView{Current: x + "1", Nodes: []runs.NodeSeen{{Node: x + "1", Visits: 2, State: x, Result: x}}, Edges: []runs.EdgeSeen{{From: x + "1", To: x + "2", Times: 1, Reason: x}}}),
		Explored: &exploredView{
			URL: x, Reason: x, Iterations: 3, Map: fileAddress(claybot.AgentID(x), x), DeadEnds: []string{x}, Errors: []string{x},
			Screens: []screenView{{ID: x, Title: x, URL: x, Dead: true, Picture: fileAddress(claybot.AgentID(x), x)}}, MoreScreens: 1,
			Transitions: []transition{{label(x), label(x), label(x)}}, MoreTransitions: 1,
		},
		Undo: &undoView{Effects: []claybot.Undo{{Step: x, Tool: x, What: x}, {Step: x, Tool: x, Call: &call}}, More: 2, Can: 1, State: claybot.RunState(x)},
	}
}

func rendered(t *testing.T, b *pages, c pageCase) string {
	t.Helper()
	html, err := b.render(c.page, c.part, c.view)
	if err != nil {
		t.Fatalf("%s %s: %v", c.page, c.part, err)
	}
	return string(html)
}

var (
	tagForm       = regexp.MustCompile(`<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:[^>"']|"[^"]*"|'[^']*')*)>`)
	attributeForm = regexp.MustCompile(`\s([a-zA-Z_:@][-a-zA-Z0-9_:.@]*)(?:=(?:"([^"]*)"|'([^']*)'))?`)
)

// shape lists the tags of HTML with the names of their attributes, and what is
// there that no template of ours has. Long texts are cut and offered as a whole
// in details, which are left out.
func shape(html string) (tags string, bad []string) {
	var all strings.Builder
	for _, m := range tagForm.FindAllStringSubmatch(html, -1) {
		name := strings.ToLower(m[2])
		switch name {
		case "img":
			if !strings.Contains(m[3], ` src="/ui/agents/`) {
				bad = append(bad, "the tag "+m[0])
			}
		case "script", "iframe", "object", "embed", "style", "base", "link", "template":
			bad = append(bad, "the tag "+m[0])
		case "details", "summary", "pre":
			continue
		}
		all.WriteString("\n" + m[1] + name)
		for _, a := range attributeForm.FindAllStringSubmatch(m[3], -1) {
			all.WriteString(" " + a[1])
			attr, value := strings.ToLower(a[1]), a[2]+a[3]
			switch {
			case strings.HasPrefix(attr, "on"), strings.HasPrefix(attr, "hx-on"), attr == "style", attr == "srcdoc", attr == "hx-vals", attr == "hx-vars":
				bad = append(bad, "the attribute "+a[0])
			case attr == "href" || attr == "src" || attr == "action" || attr == "data-live" || attr == "hx-post" || attr == "hx-delete":
				if place, inside := strings.CutPrefix(value, "#"); inside && !strings.ContainsAny(place, "<>:") {
					continue
				}
				if value == setupBotFather || value == setupApplications { // of the guide
					continue
				}
				if !strings.HasPrefix(value, "/") || strings.HasPrefix(value, "//") {
					bad = append(bad, "a link to "+value)
				}
			}
		}
	}
	return all.String(), bad
}

// The check below finds what it is for.
func TestShape(t *testing.T) {
	for _, x := range hostileTexts[:3] {
		if _, bad := shape("<p>" + x + "</p>"); len(bad) == 0 {
			t.Errorf("%s is not found", x)
		}
	}
	for _, html := range []string{`<a href="javascript:x">`, `<a href="//evil.example">`, `<p onclick="x">`, `<p style='x'>`} {
		if _, bad := shape(html); len(bad) == 0 {
			t.Errorf("%s is not found", html)
		}
	}
	raw := template.Must(template.New("").Parse(`<p>{{.}}</p>`))
	var b strings.Builder
	if err := raw.Execute(&b, template.HTML(hostileTexts[1])); err != nil {
		t.Fatal(err)
	}
	if tags, _ := shape(b.String()); tags == "\np\n/p" {
		t.Error("what a template leaves as it is has no tags")
	}
}

// What people, models and platforms wrote is text wherever it stands: a page has
// the same tags whatever it says.
func TestHostileTexts(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	who := viewer{web.Admin}
	var want []string
	for _, c := range casesOf("plain & simple", who) {
		html := rendered(t, b, c)
		tags, bad := shape(html)
		if len(bad) > 0 || tags == "" {
			t.Errorf("%s %s has %q", c.page, c.part, bad)
		}
		for _, wrong := range []string{"ZgotmplZ", "&lt;nil", "%!", "<no value>"} {
			if strings.Contains(html, wrong) {
				t.Errorf("%s %s has %q", c.page, c.part, wrong)
			}
		}
		want = append(want, tags)
	}
	for _, x := range hostileTexts {
		for i, c := range casesOf(x, who) {
			tags, bad := shape(rendered(t, b, c))
			if len(bad) > 0 {
				t.Errorf("%s %s with %.40q has %q", c.page, c.part, x, bad)
			}
			if tags != want[i] {
				t.Errorf("%s %s with %.40q has other tags:%s\nwant%s", c.page, c.part, x, tags, want[i])
			}
		}
	}
}

// A caller who may only look gets no button that acts, except that of his own
// logins.
func TestReadOnly(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	acts := regexp.MustCompile(`hx-(post|delete|patch)=`)
	some := 0
	for _, c := range casesOf("text", viewer{web.Admin}) {
		some += len(acts.FindAllString(rendered(t, b, c), -1))
	}
	if some < 10 {
		t.Errorf("an admin has %d buttons", some)
	}
	for _, c := range casesOf("text", viewer{web.Read}) {
		if html := rendered(t, b, c); c.page != "schedule" && acts.MatchString(html) {
			t.Errorf("%s acts for a caller who may only look", c.page)
		} else if n := len(acts.FindAllString(html, -1)); c.page == "schedule" && (n > 1 || strings.Contains(html, "<button")) {
			t.Errorf("%s has buttons for a caller who may only look", c.page)
		}
	}
}

// Empty pages say what to do next.
func TestEmptyPages(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	who := viewer{web.Admin}
	usage := usageView{viewer: who, period: periodOf("", time.Now()), By: storage.ByModel}
	usage.links()
	for _, c := range []struct {
		page string
		view any
		want []string
	}{
		{"schedule", scheduleView{viewer: who}, []string{"No tasks yet.", "New task", "The heartbeat has no tasks."}},
		{"deliveries", deliveriesView{viewer: who}, []string{"Nothing sent yet.", "Chats"}},
		{"deliveries", deliveriesView{viewer: who, deliveryFilter: deliveryFilter{Show: "failed"}}, []string{"No matching messages.", "Choose All"}},
		{"usage", usage, []string{"No usage in this period.", "longer period"}},
		{"access", viewAccess(who, nil, nil, overview.Status{}, 1), []string{"No pending requests.", "Unknown users who send a message get a code", "No users were approved here."}},
		{"health", viewHealth(who, overview.Status{}), []string{"No connector is configured.", "not configured"}},
		{"flows", flowsView{viewer: who}, []string{"No workflows.", "docs/workflows.md"}},
		{"members", viewMembers(who, nil), []string{"No members in the last day.", "Health"}},
		{"why", whyView{viewer: who}, []string{"What to paste"}},
		{"why", whyView{viewer: who, Asked: true, Ref: "r404"}, []string{"Nothing found for", "r404", "What to paste", "/ui/access"}},
	} {
		html := rendered(t, b, pageCase{c.page, "main", c.view})
		for _, want := range c.want {
			if !strings.Contains(html, want) {
				t.Errorf("the empty page %s does not say %q", c.page, want)
			}
		}
	}
}

// Overrides of the direction of writing are shown as what they are, and stay in
// fields, which go back to where they came from.
func TestUnturned(t *testing.T) {
	for in, want := range map[string]string{
		"plain – text": "plain – text",
		"<b title=\"a\u202eb\">say \u202egnp.exe\u202c</b>": "<b title=\"a\u202eb\">say [U+202E]gnp.exe[U+202C]</b>",
		"<textarea name=x>\u202ea</textarea>\u202e":         "<textarea name=x>\u202ea</textarea>[U+202E]",
		"<p>\u2067שלום\u2069 \u200f</p>":                    "<p>\u2067שלום\u2069 \u200f</p>",
		"\u202a<i>\u202b</i>\u202d":                         "[U+202A]<i>[U+202B]</i>[U+202D]",
	} {
		if got := unturned(in); got != want || unturned(got) != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// Receivers of events outside are described in words, the troubled ones first.
func TestHealthSinks(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	sinks := []runs.SinkHealth{
		{Name: "file", Success: 1000},
		{Name: "new"},
		{Name: "slow", Success: 1000, Backlog: 2, Oldest: 2000},
		{Name: "dead", Backlog: 1, Error: "no route to host"},
		{Name: "theirs", Standby: true},
		{Name: "held", Backlog: 1, Stopped: "stopped by boss"},
	}
	for i, want := range []string{"working", "no events yet", "catching up", "failed, retrying", "sent by another member", "stopped by an operator"} {
		if got := markOf(sinks[i]).Words; got != want {
			t.Errorf("%s %s, want %s", sinks[i].Name, got, want)
		}
	}
	v := viewHealth(viewer{web.Read}, overview.Status{OutsideStatus: overview.OutsideStatus{Model: overview.ModelStatus{Name: "m"}, Sinks: sinks}})
	html := rendered(t, b, pageCase{"health", "main", v})
	for _, want := range []string{"1 relay has failed and retries.", "events of 2 runs, oldest from <time", "no route to host", "stopped by boss", "none since the start"} {
		if !strings.Contains(html, want) {
			t.Errorf("health does not say %q", want)
		}
	}
	if html := rendered(t, b, pageCase{"health", "main", viewHealth(viewer{web.Read}, overview.Status{})}); strings.Contains(html, "health-relays") {
		t.Error("a daemon without receivers shows some")
	}
}

// Where several nodes share the store, the page says which one speaks.
func TestHealthNode(t *testing.T) {
	b := &pages{views: sync.OnceValue(readViews)}
	s := overview.Status{
		Node:       &overview.NodeStatus{ID: "n1", Name: "<b>east</b>", Nodes: 3, Err: "the database is silent"},
		Connectors: []overview.ConnectorStatus{{Name: "telegram", Health: connectors.Health{State: connectors.StateStandby}}},
	}
	html := rendered(t, b, pageCase{"health", "main", viewHealth(viewer{web.Read}, s)})
	for _, want := range []string{"&lt;b&gt;east&lt;/b&gt;", "one of 3", "the database is silent", "standby"} {
		if !strings.Contains(html, want) {
			t.Errorf("health does not say %q", want)
		}
	}
	if html := rendered(t, b, pageCase{"health", "main", viewHealth(viewer{web.Read}, overview.Status{})}); strings.Contains(html, "health-node") {
		t.Error("a daemon that is alone speaks of nodes")
	}
}
