package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	agentRows = 50 // agents that a list shows at once
	// agentKin is how many subagents, agentRuns how many runs and inboxRows how
	// many waiting messages the page of one agent shows.
	agentKin  = 50
	agentRuns = 8
	inboxRows = 50
	// historyLines is how many lines of a conversation are shown at once, and
	// historyMost the maximum if newer ones arrived since the page was opened.
	historyLines = 40
	historyMost  = 200
	// textLimit is the maximum size of one text on a page, in bytes.
	textLimit = 20_000
)

// agentPages serves the pages of agents.
type agentPages struct {
	*pages
	rows      lookup
	asked     *questionPages
	bench     *toolPages
	agents    web.Agents
	control   web.AgentControl
	settings  web.Settings
	privacy   web.Privacy
	inboxes   web.Inboxes
	reminders web.Reminders
	runs      web.Runs
	files     web.Files
}

func (b *agentPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/agents", "agents", b.agentList),
		b.part("/ui/agents/rows", "agents", "rows", b.agentList),
		b.part("/ui/agents/more", "agents", "later", b.agentList),
		b.screen("/ui/agents/{id}", "agent", b.agent),
		b.part("/ui/agents/{id}/top", "agent", "top", b.agent),
		b.part("/ui/agents/{id}/side", "agent", "side", b.agentSide),
		b.part("/ui/agents/{id}/questions", "agent", "questions", func(r *http.Request) (any, error) { return b.asked.openQuestions(r, agentOf(r), "") }),
		b.part("/ui/agents/{id}/history", "agent", "lines", func(r *http.Request) (any, error) { return b.history(r) }),
		b.part("/ui/agents/{id}/earlier", "agent", "earlier", func(r *http.Request) (any, error) { return b.history(r) }),
		b.part("/ui/agents/{id}/settings", "agent", "settings", func(r *http.Request) (any, error) { return b.readSettings(r) }),
		{Pattern: "GET /ui/agents/{id}/pictures/{file}", Scope: web.Read, Handler: http.HandlerFunc(b.picture)},
		b.act("POST /ui/agents/{id}/settings", web.Admin, b.configure),
		b.act("POST /ui/agents/{id}/stop", web.Operate, b.stopAgent),
		b.act("POST /ui/agents/{id}/reset", web.Operate, func(r *http.Request) (string, error) {
			return doneReset, b.control.ResetAgent(r.Context(), agentOf(r))
		}),
		b.act("POST /ui/agents/{id}/drop", web.Operate, b.dropMessages),
		b.act("DELETE /ui/agents/{id}", web.Admin, func(r *http.Request) (string, error) {
			return doneDeleted, b.control.DeleteAgent(r.Context(), agentOf(r))
		}),
	}
}

// An agentRow is one agent in a list. Model is the one that it used last, where
// that matters for its cost.
type agentRow struct {
	web.AgentView
	Name, Model string
}

// Mark is the state of the agent, and whether it is stopped or off.
func (r agentRow) Mark() mark {
	state := r.Condition()
	if state != r.State {
		return nodeMarks[state]
	}
	return mark{tone(state), words(state)}
}

func (r agentRow) Cost() string { return cost(r.Usage, r.Model) }

// An agentsView is one screenful of the list of agents.
type agentsView struct {
	Rows        []agentRow
	Fresh, Next string // addresses: of these rows, and of those after them
	Type, Owner string
	Busy        bool
	Types       []claybot.AgentType
}

// Filtered reports whether a filter is set.
func (v agentsView) Filtered() bool { return v.Type != "" || v.Owner != "" || v.Busy }

func (b *agentPages) agentList(r *http.Request) (any, error) {
	q := r.URL.Query()
	v := agentsView{
		Type: q.Get("type"), Owner: q.Get("owner"), Busy: q.Get("busy") != "",
		Types: []claybot.AgentType{claybot.AgentUser, claybot.AgentSubagent, claybot.AgentCron, claybot.AgentHeartbeat},
	}
	if v.Type != "" && !slices.Contains(v.Types, claybot.AgentType(v.Type)) {
		return nil, errAgentType
	}
	entries, err := b.agents.AgentPage(r.Context(), storage.AgentQuery{
		Type: claybot.AgentType(v.Type), Owner: v.Owner, Busy: v.Busy, After: claybot.AgentID(q.Get("after")), Limit: agentRows + 1,
	})
	if err != nil {
		return nil, err
	}
	entries, v.Fresh, v.Next = screenful(r, "agents", entries, agentRows, "after", func(e storage.IndexEntry) string { return string(e.ID) }, "type", "owner", "busy")
	v.Rows, err = b.rows.agentRows(r, entries)
	return v, err
}

func agentOf(r *http.Request) claybot.AgentID { return claybot.AgentID(r.PathValue("id")) }

func (b *agentPages) stopAgent(r *http.Request) (string, error) {
	n, err := b.control.StopAgent(r.Context(), agentOf(r))
	if n == 0 {
		return doneNothingRan, err
	}
	return fmt.Sprintf(doneStopping, plural(n, "run", "runs")), err
}

// dropMessages drops the waiting messages that the form names, or all if it says so.
func (b *agentPages) dropMessages(r *http.Request) (string, error) {
	var ids []claybot.MessageID
	for _, id := range r.PostForm["message"] {
		ids = append(ids, claybot.MessageID(id))
	}
	if len(ids) == 0 && r.PostForm.Get("all") == "" {
		return "", errNoMessage
	}
	dropped, err := b.inboxes.Drop(r.Context(), agentOf(r), ids...)
	if err == nil && len(dropped) == 0 {
		err = errTaken
	}
	return fmt.Sprintf(doneDropped, plural(len(dropped), "message", "messages")), err
}

// An agentView is one agent. The top of its page has nothing below Run.
type agentView struct {
	viewer
	agentRow
	Run       *claybot.Run // the unfinished one
	Questions []asked
	History   historyView
	Side      sideView
	Form      settingsView
	Bench     benchView
}

func (v agentView) Title() string { return v.Name }

// Web is the conversation of the page itself, for a link to it.
func (v agentView) Web() string {
	if d := v.Descriptor; d.Type == claybot.AgentUser && d.Connector == chatConnector {
		return d.ChannelID
	}
	return ""
}

func (b *agentPages) agent(r *http.Request) (any, error) {
	e, err := b.agents.Agent(r.Context(), agentOf(r))
	if err != nil {
		return nil, err
	}
	v := agentView{viewer: viewerOf(r)}
	if v.agentRow, err = b.rows.agentRow(r, e); err != nil {
		return nil, err
	}
	if e.Run != "" {
		run, err := b.runs.Run(r.Context(), e.Run)
		if err == nil && !run.State.Ended() {
			v.Run = &run
		}
	}
	if r.Pattern == "GET /ui/agents/{id}/top" {
		return v, nil
	}
	if v.Questions, err = b.asked.openQuestions(r, e.ID, ""); err != nil {
		return nil, err
	}
	if v.History, err = b.history(r); err != nil {
		return nil, err
	}
	if v.Side, err = b.readSide(r, e); err != nil {
		return nil, err
	}
	if v.Form, err = b.readSettings(r); err != nil {
		return nil, err
	}
	v.Bench, err = b.bench.readBench(r, e)
	return v, err
}

// A sideView has the side panel of an agent.
type sideView struct {
	viewer
	ID          claybot.AgentID
	Waiting     []claybot.AgentMessage
	MoreWaiting int
	Above       []agentRow // from the root down to the parent
	Below       []agentRow
	MoreBelow   int
	Runs        []runRow
	Reminders   []storage.Reminder
	Privacy     overview.Privacy
}

func (b *agentPages) agentSide(r *http.Request) (any, error) {
	e, err := b.agents.Agent(r.Context(), agentOf(r))
	if err != nil {
		return nil, err
	}
	return b.readSide(r, e)
}

func (b *agentPages) readSide(r *http.Request, e storage.IndexEntry) (sideView, error) {
	ctx := r.Context()
	v := sideView{viewer: viewerOf(r), ID: e.ID}
	box, err := b.inboxes.Inbox(ctx, e.ID)
	if err != nil {
		return v, err
	}
	v.Waiting, v.MoreWaiting = cut(box.Waiting, inboxRows)
	if v.Above, err = b.rows.ancestors(ctx, e); err != nil {
		return v, err
	}
	children, err := b.agents.Children(ctx, e.ID)
	if err != nil {
		return v, err
	}
	children, v.MoreBelow = cut(children, agentKin)
	if v.Below, err = b.rows.agentRows(r, children); err != nil {
		return v, err
	}
	newest, err := b.runs.RunPage(ctx, storage.RunQuery{Agent: e.ID, Limit: agentRuns})
	if err != nil {
		return v, err
	}
	if v.Runs, err = b.rows.runRowsOf(ctx, newest); err != nil {
		return v, err
	}
	if v.Reminders, err = b.reminders.AgentReminders(ctx, e.ID); err != nil {
		return v, err
	}
	v.Privacy, err = b.privacy.Privacy(ctx, e.ID)
	return v, err
}

// A line is one line of a conversation, with its tool calls and their results.
type line struct {
	claybot.Record
	Key   string
	Calls []callView
}

// A callView is a tool call. Result is nil while it has not ended.
type callView struct {
	claybot.ToolCall
	Result *claybot.Record
}

func (c callView) State() string {
	switch {
	case c.Result == nil:
		return "running"
	case c.Result.OK:
		return "ok"
	}
	return "failed"
}

// A historyView is a part of a conversation, the newest line at the end.
type historyView struct {
	Lines  []line
	Fresh  string // the address of these lines and what comes after them
	Before string // the address of those before them, empty at the beginning
}

// history shows the lines from ?from= on, or those before ?before=, or the newest ones.
func (b *agentPages) history(r *http.Request) (historyView, error) {
	records, err := b.agents.Remembered(r.Context(), agentOf(r))
	if err != nil {
		return historyView{}, err
	}
	all := linesOf(records)
	end := len(all)
	if n, err := strconv.Atoi(r.URL.Query().Get("before")); err == nil {
		end = min(max(n, 0), end)
	}
	start := max(0, end-historyLines)
	if n, err := strconv.Atoi(r.URL.Query().Get("from")); err == nil && n >= 0 && n < end && end-n <= historyMost {
		start = n // the position is from before a reset
	}
	base := "/ui/agents/" + url.PathEscape(string(agentOf(r)))
	v := historyView{Lines: all[start:end], Fresh: fmt.Sprintf("%s/history?from=%d", base, start)}
	if start > 0 {
		v.Before = fmt.Sprintf("%s/earlier?before=%d", base, start)
	}
	return v, nil
}

// linesOf joins tool results with their calls. A result without its call is a line of
// its own. It omits the notes of a graph, which the page of the run draws.
func linesOf(records []claybot.Record) []line {
	lines := make([]line, 0, len(records))
	type place struct{ line, call int }
	calls := make(map[string]place)
	for i, rec := range records {
		if rec.Type == claybot.RecordNode {
			continue
		}
		rec.Text = clip(rec.Text)
		if rec.Type == claybot.RecordTool {
			if at, ok := calls[rec.ToolCallID]; ok {
				lines[at.line].Calls[at.call].Result = &rec
				delete(calls, rec.ToolCallID) // ids may come again in later steps
				continue
			}
		}
		l := line{Record: rec, Key: fmt.Sprintf("line-%d", i)}
		for n, c := range rec.ToolCalls {
			c.Args = clip(c.Args)
			l.Calls = append(l.Calls, callView{ToolCall: c})
			calls[c.ID] = place{len(lines), n}
		}
		lines = append(lines, l)
	}
	return lines
}

// clip truncates a text that is too long for a page, with a notice.
func clip(text string) string {
	if len(text) <= textLimit {
		return text
	}
	end := textLimit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + fmt.Sprintf(clipped, grouped(int64(len(text)-end)))
}
