package dashboard

import (
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// agentKin is how many subagents, agentRuns how many runs and inboxRows how
	// many waiting messages the page of one agent shows.
	agentKin  = 50
	agentRuns = 8
	inboxRows = 50
)

// An agentView is one agent: what stands on top of its page, and what is read
// with it when the whole page is shown.
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

// Title is the name of the agent.
func (v agentView) Title() string { return v.Name }

// Web is the conversation of the page itself, for a link to it.
func (v agentView) Web() string {
	if d := v.Descriptor; d.Type == claybot.AgentUser && d.Connector == chatConnector {
		return d.ChannelID
	}
	return ""
}

// agent reads all of an agent for its page, and only the top for that part.
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
	if v.History, err = b.readHistory(r); err != nil {
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

// agentQuestions are what an agent asks.
func (b *agentPages) agentQuestions(r *http.Request) (any, error) {
	return b.asked.openQuestions(r, agentOf(r), "")
}

// A sideView is what surrounds an agent.
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
	for _, c := range children {
		row, err := b.rows.agentRow(r, c)
		if err != nil {
			return v, err
		}
		v.Below = append(v.Below, row)
	}
	newest, err := b.runs.RunPage(ctx, storage.RunQuery{Agent: e.ID, Limit: agentRuns})
	if err != nil {
		return v, err
	}
	if v.Runs, err = b.rows.runRowsOf(ctx, newest); err != nil {
		return v, err
	}
	v.Reminders, err = b.reminders.AgentReminders(ctx, e.ID)
	return v, err
}

// cut is the beginning of a list, and how many it leaves out.
func cut[T any](all []T, n int) ([]T, int) {
	if len(all) <= n {
		return all, 0
	}
	return all[:n], len(all) - n
}
