package dashboard

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// runRows is how many runs a list shows at once.
const runRows = 50

// runPages are the pages of runs: their work, their events and what they sent.
type runPages struct {
	*pages
	rows    lookup
	asked   *questionPages
	notes   *notePages
	agents  web.Agents
	runs    web.Runs
	control web.RunControl
	system  web.System
}

func (b *runPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/runs", "runs", b.runPage),
		b.part("/ui/runs/rows", "runs", "rows", b.runList),
		b.part("/ui/runs/more", "runs", "later", b.runList),
		b.screen("/ui/runs/{id}", "run", b.run),
		b.part("/ui/runs/questions", "runs", "waiting", func(r *http.Request) (any, error) { return b.asked.readWaiting(r) }),
		b.part("/ui/runs/{id}/top", "run", "top", b.run),
		b.part("/ui/runs/{id}/work", "run", "work", b.runWork),
		b.part("/ui/runs/{id}/events", "run", "items", b.runEvents),
		b.part("/ui/runs/{id}/earlier", "run", "earlier", b.runEvents),
		b.part("/ui/runs/{id}/deliveries", "run", "deliveries", b.runDeliveries),
		b.act("POST /ui/runs/{id}/cancel", web.Operate, b.cancelRun),
		b.act("POST /ui/runs/{id}/undo", web.Operate, b.undoRun),
	}
}

// A runRow is one run in a list, with the name of its agent and the model that it
// used first, where that matters for its cost.
type runRow struct {
	claybot.Run
	Name, Model string
	Of          claybot.Descriptor // of that agent; none of one that is gone
}

// Dry reports whether the run is a dry run of a workflow.
func (r runRow) Dry() bool { return r.Of.Dry() }

func (r runRow) Cost() string { return cost(r.Usage, r.Model) }

// MS is how long the run took, negative while it goes on.
func (r runRow) MS() int64 {
	if r.Ended == 0 || r.Started == 0 {
		return -1
	}
	return int64(r.Ended - r.Started)
}

func (r runRow) Tokens() int64 { return r.Usage.Input + r.Usage.Output }

// A runsView is one screenful of the list of runs. Waiting has pending questions.
type runsView struct {
	Rows        []runRow
	Fresh, Next string // addresses: of these rows, and of those after them
	State       string
	Agent       claybot.AgentID
	Name        string // of that agent
	States      []claybot.RunState
	Waiting     waitingView
}

// Filtered reports whether some runs are left out.
func (v runsView) Filtered() bool { return v.State != "" || v.Agent != "" }

// Asks reports whether the list may have runs of any agent that wait for a person.
func (v runsView) Asks() bool {
	return v.Agent == "" && (v.State == "" || v.State == string(claybot.RunAwaiting))
}

var runStates = []claybot.RunState{
	claybot.RunRunning, claybot.RunAwaiting, claybot.RunPending, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled,
}

func (b *runPages) runPage(r *http.Request) (any, error) {
	v, err := b.readRuns(r)
	if err == nil && v.Asks() {
		v.Waiting, err = b.asked.readWaiting(r)
	}
	return v, err
}

func (b *runPages) runList(r *http.Request) (any, error) { return b.readRuns(r) }

func (b *runPages) readRuns(r *http.Request) (runsView, error) {
	q := r.URL.Query()
	v := runsView{State: q.Get("state"), Agent: claybot.AgentID(q.Get("agent")), States: runStates}
	if v.State != "" && !slices.Contains(runStates, claybot.RunState(v.State)) {
		return v, errRunState
	}
	all, err := b.runs.RunPage(r.Context(), storage.RunQuery{
		Agent: v.Agent, State: claybot.RunState(v.State), Before: claybot.RunID(q.Get("before")), Limit: runRows + 1,
	})
	if err != nil {
		return v, err
	}
	all, v.Fresh, v.Next = screenful(r, "runs", all, runRows, "before", func(run claybot.Run) string { return string(run.ID) }, "state", "agent")
	if v.Rows, err = b.rows.runRowsOf(r.Context(), all); err == nil && v.Agent != "" {
		v.Name, err = b.rows.agentName(r.Context(), v.Agent)
	}
	return v, err
}

// A runView is one run. The top of its page has nothing below Questions.
type runView struct {
	viewer
	runRow
	Questions []asked
	Texts     []askedText
	Work      workView
	Timeline  timelineView
	Kinds     string // the names of all events, for the script
}

// Title names the run by its agent.
func (v runView) Title() string { return "Run of " + v.Name }

// Given is the feedback that people gave and did not withdraw.
func (v runView) Given() []claybot.Feedback { return claybot.Given(v.Feedback) }

// Live reports whether more is to come.
func (v runView) Live() bool { return !v.State.Ended() }

func runOf(r *http.Request) claybot.RunID { return claybot.RunID(r.PathValue("id")) }

func (b *runPages) run(r *http.Request) (any, error) {
	ctx := r.Context()
	run, err := b.runs.Run(ctx, runOf(r))
	if err != nil {
		return nil, err
	}
	v := runView{viewer: viewerOf(r), Kinds: eventKinds}
	if v.runRow, err = b.rows.runRowOf(ctx, run); err != nil {
		return nil, err
	}
	if v.Usage, err = runs.SoFar(run, func(seq int64) iter.Seq2[claybot.Event, error] { return b.runs.Events(ctx, run.ID, seq) }); err != nil {
		return nil, err
	}
	if v.Model, err = b.rows.modelOf(ctx, v.Run); err != nil {
		return nil, err
	}
	if run.State == claybot.RunAwaiting {
		if v.Questions, err = b.asked.openQuestions(r, run.Agent, run.ID); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(r.Pattern, "/top") {
		return v, nil
	}
	if v.Texts, err = b.textsOf(ctx, run); err != nil {
		return nil, err
	}
	if v.Work, err = b.readWork(r, run); err != nil {
		return nil, err
	}
	v.Timeline, err = b.readTimeline(r, run)
	return v, err
}

const (
	// textsMost is how many of the messages of a run are shown with their text,
	// and textRunes how much of each.
	textsMost = 5
	textRunes = 500
)

// An askedText is one message that a run works on.
type askedText struct {
	ID         claybot.MessageID
	From, Text string
}

// textsOf are the beginnings of the first messages of a run. Expired ones are left out.
func (b *runPages) textsOf(ctx context.Context, run claybot.Run) ([]askedText, error) {
	var all []askedText
	for _, id := range run.Messages[:min(len(run.Messages), textsMost)] {
		stories, err := b.system.Why(ctx, string(id))
		if ignoreGone(err) != nil {
			return nil, err
		}
		for _, s := range stories {
			if m := s.Message; m.ID == id {
				all = append(all, askedText{id, storyTitle(m), excerpt(textRunes, wordsOf(m))})
			}
		}
	}
	return all, nil
}

// wordsOf is the text of a message, the answer that it gives, or its files.
func wordsOf(m claybot.AgentMessage) string {
	if strings.TrimSpace(m.Text) == "" && len(m.Files) > 0 {
		return "[" + connectors.FilesLine(m.Files) + "]"
	}
	if m.Text != "" || m.Answer == nil || m.Answer.To == nil {
		return m.Text
	}
	switch value := m.Answer.To.Value; string(value) {
	case "", "null":
		return ""
	case "true":
		return "yes"
	case "false":
		return strings.TrimSuffix("no: "+m.Answer.To.Reason, ": ")
	default:
		var several []string
		if json.Unmarshal(value, &several) == nil {
			return strings.Join(several, ", ")
		}
		var one label
		_ = one.UnmarshalJSON(value) // it takes any JSON
		return string(one)
	}
}

// eventKinds are the types of events, apart by blanks.
var eventKinds = func() string {
	names := make([]string, 0, len(runs.Facts))
	for t := range runs.Facts {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}()

func (b *runPages) cancelRun(r *http.Request) (string, error) {
	run, err := b.control.CancelRun(r.Context(), runOf(r), web.User(r))
	if run.State.Ended() {
		return doneEnded, err
	}
	return doneCanceling, err
}

// A deliveryRow is one message that a run sent.
type deliveryRow struct {
	claybot.Outgoing
	Target string
}

// Path is where the file of the message can be had, empty where there is none.
func (d deliveryRow) Path() string {
	if d.File == nil {
		return ""
	}
	return "/agents/" + url.PathEscape(string(d.Agent)) + "/files/" + url.PathEscape(d.File.ID)
}

// A sentView is what a run has sent and noted.
type sentView struct {
	Sent  []deliveryRow
	Notes []noteRow
}

// runDeliveries lists what a run has sent or is about to send, and the notes that it changed.
func (b *runPages) runDeliveries(r *http.Request) (any, error) {
	stories, err := b.system.Why(r.Context(), r.PathValue("id"))
	if ignoreGone(err) != nil {
		return nil, err
	}
	var rows []deliveryRow
	seen := make(map[string]bool)
	for _, s := range stories {
		for _, o := range s.Replies {
			if !seen[o.ID] {
				seen[o.ID] = true
				rows = append(rows, deliveryRow{o, strings.Trim(o.Route.Connector+" · "+o.Route.ChannelID, " ·")})
			}
		}
	}
	notes, err := b.notes.notesOfRun(r, runOf(r))
	return sentView{rows, notes}, err
}
