package api

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noRun = hint{"There is no run with that id.", "GET /agents/runs lists them. Events of old runs are removed after some days."}

// A runView is a run.
type runView struct {
	ID       claybot.RunID       `json:"runId" doc:"Of the run itself, when it was asked for by a reserved id."`
	Agent    claybot.AgentID     `json:"agentId"`
	State    claybot.RunState    `json:"state"`
	Messages []claybot.MessageID `json:"messages" doc:"What it works on."`
	LastSeq  int64               `json:"lastSeq" doc:"Of the newest event."`
	Attempts int                 `json:"attempts" doc:"Passes since the last progress."`
	Cancel   string              `json:"cancel,omitempty" doc:"Who asked for its end."`
	Awaiting *awaitingView       `json:"awaiting,omitempty"`
	Output   string              `json:"output,omitempty" doc:"The reply, at most 2 KiB of it; all of it is in the history of the agent."`
	Usage    claybot.Usage       `json:"usage" doc:"Of a run under way: so far. In lists and in answers to changes, that is up to its last pause."`
	Error    *claybot.RunError   `json:"error,omitempty"`
	Engine   string              `json:"engine,omitempty" doc:"What advances it: react, plan, explore or undo. In lists, it is known from the first pause or the end on."`
	Result   json.RawMessage     `json:"result,omitempty" doc:"What a graph has put out so far, an object. Not in lists."`
	Undo     []effectView        `json:"undo,omitempty" doc:"What it did that people may want to take back. Not in lists."`
	UndoOf   claybot.RunID       `json:"undoOf,omitempty" doc:"The run whose effects this one takes back."`
	Node     string              `json:"node,omitempty" doc:"The name of the node that works on it now, where several share the store. Not in lists."`
	Started  claybot.Time        `json:"started,omitempty"`
	Ended    claybot.Time        `json:"ended,omitempty"`
	Stream   string              `json:"stream"`
}

// An awaitingView is what a paused run waits for.
type awaitingView struct {
	Reason    claybot.AwaitReason `json:"reason,omitempty"`
	Until     claybot.Time        `json:"until"`
	Answers   []claybot.MessageID `json:"answers" doc:"The ids that the answers will have."`
	Questions []claybot.Question  `json:"questions,omitempty" doc:"POST /agents/runs/{run}/answers answers them."`
}

// viewRun is all of a run, rowOf the same without what may be long.
func viewRun(r claybot.Run) runView {
	v := rowOf(r)
	v.Result = r.Result
	for _, u := range r.Undo {
		v.Undo = append(v.Undo, effectView{Step: u.Step, Tool: u.Tool, What: u.What, Can: u.Call != nil})
	}
	return v
}

func rowOf(r claybot.Run) runView {
	return runView{
		ID: r.ID, Agent: r.Agent, State: r.State, Messages: orEmpty(r.Messages), LastSeq: r.LastSeq, Attempts: r.Attempts, Cancel: r.Cancel,
		Awaiting: viewAwaiting(r.Awaiting), Output: r.Output, Usage: r.Usage, Error: r.Error, Started: r.Started, Ended: r.Ended,
		Engine: r.Engine, UndoOf: r.UndoOf, Stream: streamPath(r.ID),
	}
}

func viewAwaiting(a *claybot.Awaiting) *awaitingView {
	if a == nil {
		return nil
	}
	return &awaitingView{Reason: a.Reason, Until: a.Until, Answers: orEmpty(a.Answers), Questions: a.Questions}
}

// A runList is one page of runs.
type runList struct {
	Runs []runView `json:"runs"`
	Next string    `json:"next,omitempty" doc:"Give it as before to get the next page."`
}

// An answersRequest answers questions of a run.
type answersRequest struct {
	Answers map[string]value `json:"answers" doc:"By the key or the id of each question."`
}

var runStates = []string{
	string(claybot.RunPending), string(claybot.RunRunning), string(claybot.RunAwaiting),
	string(claybot.RunSucceeded), string(claybot.RunFailed), string(claybot.RunCanceled),
}

func (a *api) runOperations() []operation {
	return []operation{
		{
			id: "listRuns", method: http.MethodGet, path: "/agents/runs", tag: "runs", scope: web.Read,
			summary: "List runs, the newest first.",
			params: []param{
				{name: "agent", about: "Of this agent only."},
				{name: "state", about: "In this state only; PENDING lists what waits for its turn.", values: runStates},
				{name: "before", about: "The cursor of the page before."},
				limitParam,
			},
			answers: []answer{{status: http.StatusOK, value: runList{}}},
			serve:   a.listRuns,
		},
		{
			id: "getRun", method: http.MethodGet, path: "/agents/runs/{run}", tag: "runs", scope: web.Read,
			summary: "One run.", answers: []answer{{status: http.StatusOK, value: runView{}}},
			fails: []int{http.StatusNotFound}, missing: noRun, serve: a.getRun,
		},
		{
			id: "cancelRun", method: http.MethodDelete, path: "/agents/runs/{run}", tag: "runs", scope: web.Operate,
			summary: "End a run.",
			about:   "Asking twice, before its start or after its end is harmless. A reserved id whose message still waits takes back that message alone.",
			answers: []answer{
				{status: http.StatusAccepted, value: runView{}, about: "It ends soon; the run as it is now."},
				{status: http.StatusOK, value: runView{}, about: "It had ended already."},
			},
			fails: []int{http.StatusNotFound}, missing: noRun, serve: a.cancelRun,
		},
		{
			id: "streamRun", method: http.MethodGet, path: "/agents/runs/{run}/stream", tag: "runs", scope: web.Read,
			summary: "The events of a run, from the first to the last, as they happen.",
			about: "Server-Sent Events: id is seq, event is the type, data is the event. Growing text comes as TokenDelta, without an id and " +
				"never twice. The stream ends after the last event. A stream that breaks is continued by Last-Event-ID or fromSeq, without a gap " +
				"or a repeat.",
			params: []param{
				{name: "fromSeq", about: "Only events after this seq.", number: true},
				{name: "Last-Event-ID", about: "The same, as browsers send it; the larger of the two counts.", header: true},
			},
			answers: []answer{
				{status: http.StatusOK, kind: "text/event-stream", value: wireEvent{}},
				{status: http.StatusNoContent, about: "The run has ended, and Last-Event-ID is its last event: there is nothing to come back for."},
			},
			fails: []int{http.StatusNotFound}, missing: noRun, serve: a.streamRun,
		},
		{
			id: "answerRun", method: http.MethodPost, path: "/agents/runs/{run}/answers", tag: "questions", scope: web.Operate,
			summary: "Answer questions of a run.", about: "All of the answers are taken or, when one does not fit, none.", body: answersRequest{},
			answers: []answer{{status: http.StatusAccepted, value: runView{}, about: "The run goes on when it has all it waits for."}},
			fails:   []int{http.StatusNotFound, http.StatusConflict}, missing: noRun, serve: a.answerRun,
		},
	}
}

func (a *api) listRuns(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, pageDefault)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	rows, err := a.Desk.RunPage(r.Context(), storage.RunQuery{
		Agent: claybot.AgentID(q.Get("agent")), State: claybot.RunState(q.Get("state")), Before: claybot.RunID(q.Get("before")), Limit: limit + 1,
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, limit, func(r claybot.Run) string { return string(r.ID) })
	out := runList{Runs: make([]runView, len(rows)), Next: next}
	for i, x := range rows {
		out.Runs[i] = rowOf(x)
	}
	return reply(w, http.StatusOK, out)
}

func runOf(r *http.Request) claybot.RunID { return claybot.RunID(r.PathValue("run")) }

func (a *api) getRun(w http.ResponseWriter, r *http.Request) error {
	run, err := a.Desk.Run(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	if run.Usage, err = runs.SoFar(run, a.eventsOf(r.Context(), run.ID)); err != nil {
		return err
	}
	v := viewRun(run)
	if !run.State.Ended() {
		if v.Node, err = a.Desk.WorksOn(r.Context(), run.Agent); err != nil {
			return err
		}
	}
	return reply(w, http.StatusOK, v)
}

// eventsOf yields the events of a run behind a sequence number.
func (a *api) eventsOf(ctx context.Context, run claybot.RunID) func(seq int64) iter.Seq2[claybot.Event, error] {
	return func(seq int64) iter.Seq2[claybot.Event, error] { return a.Desk.Events(ctx, run, seq) }
}

func (a *api) cancelRun(w http.ResponseWriter, r *http.Request) error {
	run, err := a.Desk.CancelRun(r.Context(), runOf(r), web.User(r))
	if err != nil {
		return err
	}
	if run.State.Ended() {
		return reply(w, http.StatusOK, viewRun(run))
	}
	if now, err := a.Desk.Run(r.Context(), run.ID); err == nil { // it may have ended at once
		run = now
	}
	return reply(w, http.StatusAccepted, viewRun(run))
}

func (a *api) answerRun(w http.ResponseWriter, r *http.Request) error {
	var in answersRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	if len(in.Answers) == 0 {
		return bad("The field answers is empty.", "Give an answer by the key of each question; GET /agents/runs/"+r.PathValue("run")+" shows them.")
	}
	values := make(map[string]string, len(in.Answers))
	for key, v := range in.Answers {
		values[key] = string(v)
	}
	err := a.Desk.AnswerRun(r.Context(), runOf(r), values, web.User(r), claybot.ViaHTTP)
	if errors.Is(err, storage.ErrState) {
		return conflict("The run does not wait for these answers.", "GET /agents/runs/"+r.PathValue("run")+" shows what it waits for.")
	}
	if err != nil {
		return err
	}
	run, err := a.Desk.Run(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, viewRun(run))
}
