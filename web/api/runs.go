package api

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noRun = hint{"No run with that id.", "GET /agents/runs lists all runs. claybot removes the events of old runs after some days."}

// viewRun returns all of a run; rowOf omits the fields that may be long.
func viewRun(r claybot.Run) web.RunView {
	v := rowOf(r)
	v.Result = r.Result
	for _, u := range r.Undo {
		v.Undo = append(v.Undo, web.EffectView{Step: u.Step, Tool: u.Tool, What: u.What, Can: u.Call != nil})
	}
	return v
}

func rowOf(r claybot.Run) web.RunView {
	return web.RunView{
		ID: r.ID, Agent: r.Agent, State: r.State, Messages: orEmpty(r.Messages), LastSeq: r.LastSeq, Attempts: r.Attempts, Cancel: r.Cancel,
		Awaiting: viewAwaiting(r.Awaiting), Output: r.Output, Usage: r.Usage, Error: r.Error, Started: r.Started, Ended: r.Ended,
		Engine: r.Engine, UndoOf: r.UndoOf, Feedback: claybot.Given(r.Feedback), Stream: streamPath(r.ID),
	}
}

func viewAwaiting(a *claybot.Awaiting) *web.AwaitingView {
	if a == nil {
		return nil
	}
	return &web.AwaitingView{Reason: a.Reason, Until: a.Until, Answers: orEmpty(a.Answers), Questions: a.Questions}
}

var runStates = []string{
	string(claybot.RunPending), string(claybot.RunRunning), string(claybot.RunAwaiting),
	string(claybot.RunSucceeded), string(claybot.RunFailed), string(claybot.RunCanceled),
}

// runAPI serves runs, their events, questions and plans, and undo.
type runAPI struct {
	runs      web.Runs
	agents    web.Agents
	control   web.RunControl
	questions web.Questions
	system    web.System
	flows     web.Flows // nil: there are none
	log       *slog.Logger
}

func (a runAPI) operations() []operation {
	return operation{tag: "runs", missing: noRun, fails: []int{http.StatusNotFound}}.like(
		returns(http.StatusOK, op("listRuns", web.Read, "GET /agents/runs", "List runs, newest first.").failing().query(
			param{name: "agent", about: "Only for this agent."},
			param{name: "state", about: "Only runs in this state; PENDING lists those that wait for their turn.", values: runStates},
			param{name: "before", about: "The cursor of the previous page."},
			limitParam,
		), a.list),
		returns(http.StatusOK, op("getRun", web.Read, "GET /agents/runs/{run}", "Get a run."), a.get),
		returns(http.StatusOK, op("getRunOutput", web.Read, "GET /agents/runs/{run}/output", "Get the whole output of a run, and its messages.").
			query(param{name: "after", about: "The cursor of the previous page of messages."}, limitParam).failing(http.StatusNotFound, http.StatusConflict), a.output),
		op("cancelRun", web.Operate, "DELETE /agents/runs/{run}", "Cancel a run.").
			explained("Repeating the call, or calling it before the start or after the end, is harmless. For a reserved id whose message still waits, this withdraws that message alone.").
			served(a.cancel, answer{status: http.StatusAccepted, value: web.RunView{}, about: "The run ends soon; this is its current state."},
				answer{status: http.StatusOK, value: web.RunView{}, about: "The run had already ended."}),
		op("streamRun", web.Read, "GET /agents/runs/{run}/stream", "Stream the events of a run, from the first to the last, as they happen.").
			explained("Server-Sent Events: id is seq, event is the type, data is the event. Growing text comes as TokenDelta, without an id and "+
				"never twice. The stream ends after the last event. To resume a broken stream without gaps or repeats, send Last-Event-ID or fromSeq.").
			query(param{name: "format", about: "events (default), or node_status: events of the type node_status alone, with node_id and status (running, success, failed, waiting), and the last event.", values: []string{"events", nodeStatus}},
				param{name: "fromSeq", about: "Only events after this seq.", number: true},
				param{name: "Last-Event-ID", about: "The same, as browsers send it; the larger of the two counts.", header: true}).
			served(a.stream, answer{status: http.StatusOK, kind: "text/event-stream", value: wireEvent{}},
				answer{status: http.StatusNoContent, about: "The run has ended, and Last-Event-ID is its last event: nothing more will come."}),
		takes(http.StatusAccepted, op("answerRun", web.Operate, "POST /agents/runs/{run}/answers", "Answer questions of a run.").tagged("questions").
			explained("If one answer is invalid, claybot accepts none. Answers to approvals, or to questions for approvers, need the scope approve.").
			failing(http.StatusNotFound, http.StatusConflict), a.answer).replying("The run continues once it has everything it waits for."),
		returns(http.StatusAccepted, op("undoRun", web.Operate, "POST /agents/runs/{run}/undo", "Undo the side effects of a run.").
			explained("A new run undoes each side effect, newest first, and reports what it undid, what failed and what cannot be undone. "+
				"A run is undone once, after its end and within 30 days; an undo cannot be undone.").
			failing(http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable), func(r *http.Request) (web.Accepted, error) {
			got, err := a.control.UndoRun(r.Context(), runOf(r), web.User(r))
			return web.Accepted{Accepted: got, Stream: streamPath(got.Run)}, err
		}).replying("The run that undoes them."),
		returns(http.StatusOK, op("getPlan", web.Read, "GET /agents/runs/{run}/plan", "Get the plan of a run, its progress, and the current graph node.").
			tagged("graphs").
			explained("It is what the events of the run tell up to now. steps is empty when the run makes no plan, or none yet. A step is pending, waiting (for an "+
				"approval: questionId, or for its tool), running, ok, failed or skipped. Of an undo run, the steps are what it takes back."), a.plan),
	)
}

func (a runAPI) list(r *http.Request) (web.RunList, error) {
	limit, q := limitOf(r, pageDefault), r.URL.Query()
	rows, err := a.runs.RunPage(r.Context(), storage.RunQuery{
		Agent: claybot.AgentID(q.Get("agent")), State: claybot.RunState(q.Get("state")), Before: claybot.RunID(q.Get("before")), Limit: limit + 1,
	})
	rows, next := cut(rows, limit, func(r claybot.Run) string { return string(r.ID) })
	list := web.RunList{Runs: each(rows, rowOf), Next: next}
	for i := range rows {
		if err == nil {
			list.Runs[i].Dry, err = a.dry(r.Context(), rows[i])
		}
	}
	return list, err
}

// dry reports whether a run is a dry run of a workflow. That of an agent that is gone is none.
func (a runAPI) dry(ctx context.Context, run claybot.Run) (bool, error) {
	if run.Engine != "" && !strings.HasPrefix(run.Engine, claybot.EngineFlow+":") {
		return false, nil
	}
	agent, err := a.agents.Agent(ctx, run.Agent)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return agent.Descriptor.Dry(), err
}

func runOf(r *http.Request) claybot.RunID { return claybot.RunID(r.PathValue("run")) }

func (a runAPI) get(r *http.Request) (v web.RunView, err error) {
	run, err := a.runs.Run(r.Context(), runOf(r))
	if err != nil {
		return v, err
	}
	if run.Usage, err = a.usage(r.Context(), run); err != nil {
		return v, err
	}
	v = viewRun(run)
	if v.Requests, err = a.requests(r.Context(), run); err != nil {
		return v, err
	}
	if v.Dry, err = a.dry(r.Context(), run); err != nil {
		return v, err
	}
	if !run.State.Ended() {
		v.Node, err = a.system.WorksOn(r.Context(), run.Agent)
	}
	return v, err
}

// requests returns the ids of the requests that brought the messages of a run.
func (a runAPI) requests(ctx context.Context, run claybot.Run) (all []string, err error) {
	for _, id := range run.Messages {
		if !strings.HasPrefix(string(id), claybot.ConnectorAPI+"/") {
			continue
		}
		m, err := a.runs.Receipt(ctx, id)
		if errors.Is(err, storage.ErrNotFound) {
			continue // removed by retention
		}
		if err != nil {
			return nil, err
		}
		if id := m.Message.Request; id != "" && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all, nil
}

// output returns what a run came to.
func (a runAPI) output(r *http.Request) (v web.RunOutput, err error) {
	run, err := a.runs.Run(r.Context(), runOf(r))
	if err != nil {
		return v, err
	}
	usage, err := a.usage(r.Context(), run)
	if err != nil {
		return v, err
	}
	all, err := a.runs.RunRecords(r.Context(), run)
	if err != nil {
		return v, err
	}
	first, err := after(all, r.URL.Query().Get("after"))
	if err != nil {
		return v, err
	}
	v = web.RunOutput{ID: run.ID, State: run.State, Output: replyText(all, run.ID), Usage: usage, Result: run.Result, Error: run.Error}
	if v.Output == "" {
		if v.Output, err = a.replied(r.Context(), run, all); err != nil {
			return v, err
		}
	}
	v.Partial = slices.ContainsFunc(run.Messages, func(id claybot.MessageID) bool {
		return !slices.ContainsFunc(all, func(r claybot.Record) bool { return r.MessageID == id })
	})
	v.Messages = orEmpty(all[first:min(first+limitOf(r, pageDefault), len(all))])
	if end := first + len(v.Messages); end < len(all) {
		v.Next = cursor(all, end)
	}
	return v, nil
}

// replied returns what a run came to that has no text of its own: that of a flow is its last reply. Where its
// records are gone, a long one is cut.
func (a runAPI) replied(ctx context.Context, run claybot.Run, all []claybot.Record) (string, error) {
	if begin, isCut := previewed(run.Output); isCut && a.flows != nil {
		text, err := a.flows.Replied(ctx, run, all)
		if err != nil || strings.HasPrefix(text, begin) {
			return text, err
		}
	}
	return run.Output, nil
}

// usage is what a run has taken so far.
func (a runAPI) usage(ctx context.Context, run claybot.Run) (claybot.Usage, error) {
	return runs.SoFar(run, func(seq int64) iter.Seq2[claybot.Event, error] { return a.runs.Events(ctx, run.ID, seq) })
}

func (a runAPI) cancel(w http.ResponseWriter, r *http.Request) error {
	run, err := a.control.CancelRun(r.Context(), runOf(r), web.User(r))
	if err != nil {
		return err
	}
	if run.State.Ended() {
		return reply(w, http.StatusOK, viewRun(run))
	}
	if now, err := a.runs.Run(r.Context(), run.ID); err == nil { // it may have ended at once
		run = now
	}
	return reply(w, http.StatusAccepted, viewRun(run))
}

func (a runAPI) answer(r *http.Request, in web.AnswersRequest) (v web.RunView, err error) {
	if len(in.Answers) == 0 {
		return v, bad("The field answers is empty.", "Give an answer by the key of each question; see GET /agents/runs/"+r.PathValue("run")+".")
	}
	values := make(map[string]string, len(in.Answers))
	for key, v := range in.Answers {
		values[key] = string(v)
	}
	err = a.questions.AnswerRun(r.Context(), runOf(r), values, web.User(r), claybot.ViaHTTP, web.CallerOf(r).Scope.Allows(web.Approve))
	if errors.Is(err, storage.ErrState) {
		return v, conflict("The run does not wait for these answers.", "GET /agents/runs/"+r.PathValue("run")+" shows what it waits for.")
	}
	if err != nil {
		return v, err
	}
	run, err := a.runs.Run(r.Context(), runOf(r))
	return viewRun(run), err
}

func (a runAPI) plan(r *http.Request) (v web.PlanView, err error) {
	run, err := a.runs.Run(r.Context(), runOf(r))
	if err != nil {
		return v, err
	}
	v = web.PlanView{Run: run.ID, Engine: run.Engine, State: run.State}
	v.PlanView, err = web.FoldPlan(r.Context(), a.runs, run.ID, 0)
	return v, err
}
