package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

const (
	// timelineEvents is how many events a page of a run shows at once.
	timelineEvents = 200
	// timelineBack is how far back the beginnings of what ended now are looked
	// for.
	timelineBack = 400
)

// An item is one thing that happened in a run: an event, or a pair of a
// beginning and an end.
type item struct {
	Key   string // the same for both of a pair
	Seq   int64  // of the first event
	Last  int64  // of the newest
	At    claybot.Time
	Icon  string
	Tone  string // running, ok, failed, waiting; empty for what only happened
	Title string
	Note  string // what belongs to the title, short
	Text  string // Markdown of the model
	Args  string
	Out   string // what came of it
	MS    int64
	Usage *claybot.Usage
	Model string // of Usage
	// Links of what it is about.
	Messages  []claybot.MessageID
	Tainted   bool   // the result is from somebody whom nobody vouches for
	Edited    string // the arguments of a person with which the call ran
	Agent     claybot.AgentID
	Questions []claybot.Question
}

// A timelineView is a part of a run's events, oldest first.
type timelineView struct {
	Items  []item
	Last   int64  // seq of the newest event that is shown
	Before string // the address of the events before, empty at the beginning
}

// readTimeline shows the newest events of a run.
func (b *runPages) readTimeline(r *http.Request, run claybot.Run) (timelineView, error) {
	return b.eventsOf(r, run, max(0, run.LastSeq-timelineEvents), 0)
}

// runEvents shows the events after ?after=, or the page before ?before=.
func (b *runPages) runEvents(r *http.Request) (any, error) {
	run, err := b.runs.Run(r.Context(), claybot.RunID(r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	if text := r.URL.Query().Get("before"); text != "" {
		before, err := strconv.ParseInt(text, 10, 64)
		if err != nil || before < 1 {
			return nil, refused(http.StatusBadRequest, "before must be the number of an event.", "")
		}
		return b.eventsOf(r, run, max(0, before-1-timelineEvents), before)
	}
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil || after < 0 {
		return nil, refused(http.StatusBadRequest, "after must be the number of an event.", "")
	}
	return b.eventsOf(r, run, after, 0)
}

// eventsOf reads the events after a seq, up to the one before end (0: as many as
// a page shows). Beginnings that lie further back are found, so that a pair is
// always whole.
func (b *runPages) eventsOf(r *http.Request, run claybot.Run, after, end int64) (timelineView, error) {
	v := timelineView{Last: after}
	t := newTeller()
	for e, err := range b.runs.Events(r.Context(), run.ID, max(0, after-timelineBack)) {
		if err != nil {
			return v, err
		}
		if end > 0 && e.Seq >= end || e.Seq > after+timelineEvents {
			break
		}
		t.tell(e)
		v.Last = max(v.Last, e.Seq)
	}
	for _, it := range t.items {
		if it.Last > after {
			v.Items = append(v.Items, it)
		}
	}
	if after > 0 {
		v.Before = fmt.Sprintf("/ui/runs/%s/earlier?before=%d", url.PathEscape(string(run.ID)), after+1)
	}
	return v, nil
}

// A teller makes items of events.
type teller struct {
	items []item
	open  map[string]int // key of what has begun → its place
	model string         // that answered last
	tasks []string       // of the agents that the last call starts
}

func newTeller() *teller { return &teller{open: make(map[string]int)} }

// add shows something that only happened.
func (t *teller) add(e claybot.Event, it item) {
	it.Key, it.Seq, it.Last, it.At = fmt.Sprintf("event-%d", e.Seq), e.Seq, e.Seq, e.At
	t.items = append(t.items, it)
}

// begin shows something that will end.
func (t *teller) begin(e claybot.Event, pair string, it item) {
	t.open[pair] = len(t.items)
	t.add(e, it)
}

// end completes what has begun, or shows the end alone when its beginning is
// too far away.
func (t *teller) end(e claybot.Event, pair string, change func(*item)) {
	at, ok := t.open[pair]
	if !ok {
		at = len(t.items)
		t.add(e, item{})
		t.open[pair] = at
	}
	t.items[at].Last = e.Seq
	change(&t.items[at])
}

// facts reads the data of an event; what cannot be read is left empty.
func facts[T any](e claybot.Event) (v T) {
	_ = json.Unmarshal(e.Data, &v) // the event is shown without what is missing
	return v
}

// tell adds what an event says.
func (t *teller) tell(e claybot.Event) {
	switch e.Type {
	case claybot.EventRunStarted, claybot.EventRunResumed, claybot.EventMessagesInjected:
		t.taken(e)
	case claybot.EventNodeStarted, claybot.EventNodeFinished:
		t.node(e)
	case claybot.EventAssistantMessage:
		t.step(e)
	case claybot.EventStepStarted, claybot.EventStepFinished:
		t.planned(e)
	case claybot.EventToolCalled, claybot.EventToolSucceeded, claybot.EventToolFailed, claybot.EventToolWaiting:
		t.tool(e)
	case claybot.EventAwaitingInput, claybot.EventAnswered:
		t.pause(e)
	case claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled:
		t.last(e)
	default:
		t.other(e)
	}
}

func (t *teller) taken(e claybot.Event) {
	d := facts[runs.MessagesTaken](e)
	it := item{Icon: "flag", Title: "Started", Messages: d.Messages}
	switch {
	case e.Type == claybot.EventMessagesInjected:
		it.Icon, it.Title, it.Note = "plus", "Took in "+plural(len(d.Messages), "more message", "more messages"), ""
	case e.Type == claybot.EventRunResumed:
		it.Icon, it.Title = "refresh", "Went on"
		if d.Reason == "restart" { // of the process, or of the run after a fault
			it.Note = "after an interruption"
		} else if d.Reason != "" {
			it.Note = "after " + words(d.Reason)
		}
	}
	if d.Attempt > 1 {
		it.Note = strings.TrimSpace(it.Note + " · attempt " + strconv.Itoa(d.Attempt))
	}
	t.add(e, it)
}

func (t *teller) node(e claybot.Event) {
	if e.Type == claybot.EventNodeStarted {
		d := facts[runs.NodeStarted](e)
		t.begin(e, fmt.Sprintf("node/%s/%d", d.Node, d.Iteration), item{
			Icon: "fork", Title: d.Node, Note: "turn " + strconv.Itoa(d.Iteration), Tone: "node running",
		})
		return
	}
	d := facts[runs.NodeFinished](e)
	t.end(e, fmt.Sprintf("node/%s/%d", d.Node, d.Iteration), func(it *item) {
		it.Icon, it.Title, it.Note, it.Tone, it.MS = "fork", d.Node, "turn "+strconv.Itoa(d.Iteration), "node", d.MS
		if d.Result != "" {
			it.Note += " · " + d.Result
		}
	})
}

func (t *teller) step(e claybot.Event) {
	d := facts[runs.AssistantMessage](e)
	it := item{Icon: "spark", Title: "Model answered", Note: d.Model, Text: d.Text, MS: d.MS, Usage: d.Tokens, Model: d.Model, Tone: "step"}
	t.model = d.Model
	if n := len(d.Calls); n > 0 {
		names := make([]string, n)
		for i, c := range d.Calls {
			names[i] = c.Tool
		}
		it.Title = "Model wants " + strings.Join(names, ", ")
	}
	t.add(e, it)
}

// planned shows one try of a step of a plan.
func (t *teller) planned(e claybot.Event) {
	d := facts[runs.PlanStep](e)
	pair := fmt.Sprintf("step/%s/%d", d.StepID, d.Attempt)
	it := item{Icon: "todo", Title: "Step " + d.StepID + ": " + d.Tool, Tone: "running"}
	if d.Attempt > 1 {
		it.Note = "attempt " + strconv.Itoa(d.Attempt)
	}
	if e.Type == claybot.EventStepStarted {
		t.begin(e, pair, it)
		return
	}
	it.Icon, it.Tone = "skip", ""
	switch word, _, _ := strings.Cut(d.Status, ":"); word {
	case "ok":
		it.Icon, it.Tone = "check", "ok"
	case "failed":
		it.Icon, it.Tone = "warn", "failed"
	case "retry", "waits", "waiting":
		it.Icon, it.Tone = "refresh", "waiting"
	}
	it.Note = strings.Trim(it.Note+" · "+d.Status, " ·")
	t.end(e, pair, func(to *item) { to.Icon, to.Title, to.Tone, to.Note = it.Icon, it.Title, it.Tone, it.Note })
}

func (t *teller) tool(e claybot.Event) {
	if e.Type == claybot.EventToolCalled {
		d := facts[runs.ToolStarted](e)
		t.tasks = tasksOf(d.ArgsPreview)
		t.begin(e, "call/"+d.CallID, item{Icon: "tool", Title: d.Tool, Args: d.ArgsPreview, Tone: "running"})
		return
	}
	if e.Type == claybot.EventToolWaiting {
		d := facts[runs.ToolWaiting](e)
		t.end(e, "call/"+d.CallID, func(it *item) {
			it.Icon, it.Title, it.Tone, it.Note = "tool", d.Tool, "waiting", "waits for "+words(d.Reason)
		})
		return
	}
	d := facts[runs.ToolEnded](e)
	t.end(e, "call/"+d.CallID, func(it *item) {
		it.Icon, it.Title, it.Tone, it.Note, it.MS, it.Out = "tool", d.Tool, "ok", "", d.MS, d.Preview
		if e.Type == claybot.EventToolFailed {
			it.Tone, it.Note, it.Out = "failed", words(d.Code), d.Error
		}
		it.Tainted = d.Tainted
		it.Edited, it.Out = editedArgs(it.Out)
		if d.Saved != "" {
			it.Note = strings.TrimSpace(it.Note + " all of it is in " + d.Saved)
		}
	})
}

// editedMark is how the result of a call begins whose arguments a person changed.
var editedMark, _, _ = strings.Cut(tools.Edited("\x00", ""), "\x00")

// editedArgs parts the result of such a call into its arguments and the rest.
func editedArgs(result string) (args, rest string) {
	text, ok := strings.CutPrefix(result, editedMark)
	if !ok {
		return "", result
	}
	if args, rest, ok = strings.Cut(text, "\n\n"); !ok {
		return text, "" // the rest was cut off
	}
	return args, rest
}

func (t *teller) pause(e claybot.Event) {
	if e.Type == claybot.EventAnswered {
		d := facts[runs.Answered](e)
		note := "by " + string(d.Via)
		if d.By != "" {
			note = "by " + d.By + ", " + string(d.Via)
		}
		t.add(e, item{Icon: "check", Title: "A question was answered", Note: note})
		return
	}
	d := facts[runs.AwaitingInput](e)
	it := item{Icon: "ask", Title: "Waits", Tone: "waiting", Questions: d.Questions}
	if d.Reason != "" {
		it.Title = "Waits for " + words(d.Reason)
	}
	t.add(e, it)
}

func (t *teller) last(e claybot.Event) {
	switch e.Type {
	case claybot.EventRunFinished:
		d := facts[runs.RunFinished](e)
		t.add(e, item{Icon: "check", Title: "Done", Tone: "end ok", Usage: &d.Usage, Model: t.model})
	case claybot.EventRunFailed:
		d := facts[runs.RunFailed](e)
		t.add(e, item{Icon: "warn", Title: "Failed", Note: words(d.Code), Out: d.Error, Tone: "end failed"})
	default:
		d := facts[runs.RunCanceled](e)
		t.add(e, item{Icon: "stop", Title: "Stopped", Note: "by " + words(known(d.By)), Tone: "end"})
	}
}

func (t *teller) other(e claybot.Event) {
	it := item{Icon: "flag", Title: string(e.Type)}
	switch e.Type {
	case claybot.EventEdgeTaken:
		d := facts[runs.EdgeTaken](e)
		it = item{Icon: "fork", Title: d.From + " → " + d.To, Note: d.Reason, Tone: "node"}
	case claybot.EventPlanGenerated:
		d := facts[runs.PlanGenerated](e)
		steps, _ := json.Marshal(d.Steps) // they come from JSON
		it = item{Icon: "fold", Title: "Made a plan of " + plural(len(d.Steps), "step", "steps"), Note: cmp.Or(planModes[d.Mode], d.Mode), Args: string(steps), Out: d.Diff}
	case claybot.EventPolicySwitched:
		d := facts[runs.PolicySwitched](e)
		it = item{Icon: "flag", Title: "New rules: " + d.From + " → " + d.To, Note: d.Reason}
	case claybot.EventProviderSwitched:
		d := facts[runs.ProviderSwitched](e)
		it = item{Icon: "flag", Title: "Another provider: " + d.From + " → " + d.To, Note: words(d.Class)}
	case claybot.EventContextCompacted:
		d := facts[runs.ContextCompacted](e)
		it = item{Icon: "fold", Title: "Summed up what came before", Note: "the last " + strconv.Itoa(d.Keep) + " lines stay as they are", Usage: d.Tokens}
	case claybot.EventSubagentStarted:
		d := facts[runs.SubagentStarted](e)
		it = item{Icon: "agents", Title: "Started " + t.helper(d), Agent: d.Agent}
	case claybot.EventBudgetReached:
		d := facts[runs.BudgetReached](e)
		it = item{Icon: "warn", Title: "The budget is spent", Note: budgetNote(d), Tone: "waiting"}
		switch {
		case d.TooSmall:
			it.Title = "The budget is too small"
		case d.Limit == "":
			it.Title = "The budget does not allow the call"
		case d.Name == "": // an older version has not recorded which of the two it was
			it.Title = "A budget was reached"
		}
	case claybot.EventFallback:
		it = item{Icon: "warn", Title: "The plan failed", Out: facts[runs.Fallback](e).Error, Tone: "failed"}
	case claybot.EventUndoQueued, claybot.EventUndoFinished, claybot.EventUndoFailed:
		d := facts[runs.Undo](e)
		it = item{Icon: "reset", Title: undoWords[e.Type] + d.Tool, Note: d.StepID, Out: d.Error}
		if e.Type == claybot.EventUndoFailed {
			it.Tone = "failed"
		}
	}
	t.add(e, it)
}

// budgetNote says which budget was reached and how it stood.
func budgetNote(d runs.BudgetReached) string {
	if d.Limit == "" {
		return d.Name
	}
	spent := d.Spent
	if strings.HasSuffix(d.Limit, " tokens") {
		spent = strings.TrimSuffix(spent, " tokens")
	}
	how := " spent"
	if d.Scope == runs.ScopePlan {
		how = " estimated"
	}
	return strings.TrimPrefix(d.Name+": "+spent+" of "+d.Limit+how, ": ")
}

var undoWords = map[claybot.EventType]string{
	claybot.EventUndoQueued: "Will take back: ", claybot.EventUndoFinished: "Took back: ", claybot.EventUndoFailed: "Could not take back: ",
}

// helper is what a started agent is called: by its name, by the beginning of
// its task, or by its id.
func (t *teller) helper(d runs.SubagentStarted) string {
	task := ""
	if len(t.tasks) > 0 {
		task, t.tasks = t.tasks[0], t.tasks[1:]
	}
	switch {
	case d.Name != "":
		return "the agent " + d.Name
	case task != "":
		return "an agent: " + excerpt(60, task)
	}
	return "the agent " + excerpt(6, string(d.Agent))
}

// tasksOf are the tasks of the agents that a call starts, in their order, as far
// as the beginning of its arguments has them.
func tasksOf(args string) (tasks []string) {
	for dec := json.NewDecoder(strings.NewReader(args)); ; {
		token, err := dec.Token()
		if err != nil {
			return tasks // the end, or where it is cut
		}
		if token != "task" {
			continue
		}
		if token, err = dec.Token(); err != nil {
			return tasks
		}
		if task, ok := token.(string); ok {
			tasks = append(tasks, task)
		}
	}
}
