package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

const (
	// timelineEvents is how many events a page of a run shows at once.
	timelineEvents = 200
	// timelineBack is how far back the start of a pair is looked for.
	timelineBack = 400
)

// An item is one thing that happened in a run: an event, or a pair of a start and an
// end. Tone is running, ok, failed, waiting or empty.
type item struct {
	Key               string // the same for both of a pair
	Seq, Last         int64  // of the first and the newest event
	At                claybot.Time
	Icon, Tone        string
	Title, Note       string
	Text              string // Markdown of the model
	Args, Edited, Out string // the arguments, those of a person in their place, the result
	MS                int64
	Tainted           bool
	itemRefs
}

// itemRefs is what an item refers to.
type itemRefs struct {
	Usage     *claybot.Usage
	Model     string // of Usage
	Messages  []claybot.MessageID
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
	run, err := b.runs.Run(r.Context(), runOf(r))
	if err != nil {
		return nil, err
	}
	if text := r.URL.Query().Get("before"); text != "" {
		before, err := strconv.ParseInt(text, 10, 64)
		if err != nil || before < 1 {
			return nil, errBefore
		}
		return b.eventsOf(r, run, max(0, before-1-timelineEvents), before)
	}
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil || after < 0 {
		return nil, errAfter
	}
	return b.eventsOf(r, run, after, 0)
}

// eventsOf reads the events after a seq, up to the one before end (0: as many as a
// page shows), with the starts of pairs that lie further back.
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
	tasks []string       // of the subagents that the last call starts
}

func newTeller() *teller { return &teller{open: make(map[string]int)} }

// add shows an event that stands alone.
func (t *teller) add(e claybot.Event, it item) {
	it.Key, it.Seq, it.Last, it.At = fmt.Sprintf("event-%d", e.Seq), e.Seq, e.Seq, e.At
	t.items = append(t.items, it)
}

// begin shows the start of a pair.
func (t *teller) begin(e claybot.Event, pair string, it item) {
	t.open[pair] = len(t.items)
	t.add(e, it)
}

// end completes a pair, or shows the end alone when the start is too far away.
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

// facts decodes the data of an event; fields that cannot be decoded stay empty.
func facts[T any](e claybot.Event) (v T) {
	_ = json.Unmarshal(e.Data, &v)
	return v
}

// tell adds an event.
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
	default:
		it := item{Icon: "flag", Title: string(e.Type)}
		if of := itemsOf[e.Type]; of != nil {
			it = of(t, e)
		}
		t.add(e, it)
	}
}

func (t *teller) taken(e claybot.Event) {
	d := facts[runs.MessagesTaken](e)
	it := item{Icon: "flag", Title: "Started", itemRefs: itemRefs{Messages: d.Messages}}
	switch {
	case e.Type == claybot.EventMessagesInjected:
		it.Icon, it.Title = "plus", "Received "+plural(len(d.Messages), "more message", "more messages")
	case e.Type == claybot.EventRunResumed:
		it.Icon, it.Title = "refresh", "Resumed"
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
	d := facts[runs.NodeFinished](e) // which has all that a start has
	pair, note := fmt.Sprintf("node/%s/%d", d.Node, d.Iteration), "iteration "+strconv.Itoa(d.Iteration)
	if e.Type == claybot.EventNodeStarted {
		t.begin(e, pair, item{Icon: "fork", Title: d.Node, Note: note, Tone: "node running"})
		return
	}
	t.end(e, pair, func(it *item) {
		it.Icon, it.Title, it.Tone, it.MS = "fork", d.Node, "node", d.MS
		it.Note = strings.TrimSuffix(note+" · "+d.Result, " · ")
	})
}

func (t *teller) step(e claybot.Event) {
	d := facts[runs.AssistantMessage](e)
	it := item{Icon: "spark", Title: "Model responded", Note: d.Model, Text: d.Text, MS: d.MS, Tone: "step", itemRefs: itemRefs{Usage: d.Tokens, Model: d.Model}}
	t.model = d.Model
	if n := len(d.Calls); n > 0 {
		names := make([]string, n)
		for i, c := range d.Calls {
			names[i] = c.Tool
		}
		it.Title = "Model called " + strings.Join(names, ", ")
		if d.Model == "" && d.Tokens == nil {
			it.Title = "The command called " + strings.Join(names, ", ")
		}
	}
	t.add(e, it)
}

// planned shows one attempt at a step of a plan.
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
	switch e.Type {
	case claybot.EventToolCalled:
		d := facts[runs.ToolStarted](e)
		t.tasks = tasksOf(d.ArgsPreview)
		t.begin(e, "call/"+d.CallID, item{Icon: "tool", Title: d.Tool, Args: d.ArgsPreview, Tone: "running"})
		return
	case claybot.EventToolWaiting:
		d := facts[runs.ToolWaiting](e)
		t.end(e, "call/"+d.CallID, func(it *item) {
			it.Icon, it.Title, it.Tone, it.Note = "tool", d.Tool, "waiting", "waiting for "+words(d.Reason)
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
			it.Note = strings.TrimSpace(it.Note + " full result in " + d.Saved)
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
	args, rest, _ = strings.Cut(text, "\n\n") // without a rest, that was truncated
	return args, rest
}

// itemsOf are the items of events that stand alone.
var itemsOf = map[claybot.EventType]func(t *teller, e claybot.Event) item{
	claybot.EventAwaitingInput: func(_ *teller, e claybot.Event) item {
		d := facts[runs.AwaitingInput](e)
		return item{Icon: "ask", Title: strings.TrimSuffix("Waiting for "+words(d.Reason), " for "), Tone: "waiting", itemRefs: itemRefs{Questions: d.Questions}}
	},
	claybot.EventAnswered: func(_ *teller, e claybot.Event) item {
		d := facts[runs.Answered](e)
		return item{Icon: "check", Title: "Question answered", Note: "by " + strings.TrimPrefix(d.By+", "+string(d.Via), ", ")}
	},
	claybot.EventRunFinished: func(t *teller, e claybot.Event) item {
		d := facts[runs.RunFinished](e)
		return item{Icon: "check", Title: "Done", Tone: "end ok", itemRefs: itemRefs{Usage: &d.Usage, Model: t.model}}
	},
	claybot.EventRunFailed: func(_ *teller, e claybot.Event) item {
		d := facts[runs.RunFailed](e)
		return item{Icon: "warn", Title: "Failed", Note: words(d.Code), Out: d.Error, Tone: "end failed"}
	},
	claybot.EventRunCanceled: func(_ *teller, e claybot.Event) item {
		return item{Icon: "stop", Title: "Canceled", Note: "by " + words(known(facts[runs.RunCanceled](e).By)), Tone: "end"}
	},
	claybot.EventEdgeTaken: func(_ *teller, e claybot.Event) item {
		d := facts[runs.EdgeTaken](e)
		return item{Icon: "fork", Title: d.From + " → " + d.To, Note: d.Reason, Tone: "node"}
	},
	claybot.EventPlanGenerated: func(_ *teller, e claybot.Event) item {
		d := facts[runs.PlanGenerated](e)
		steps, _ := json.Marshal(d.Steps) // they come from JSON
		return item{Icon: "fold", Title: "Planned " + plural(len(d.Steps), "step", "steps"), Note: cmp.Or(planModes[d.Mode], d.Mode), Args: string(steps), Out: d.Diff}
	},
	claybot.EventPolicySwitched: func(_ *teller, e claybot.Event) item {
		d := facts[runs.PolicySwitched](e)
		return item{Icon: "flag", Title: "Policy changed: " + d.From + " → " + d.To, Note: d.Reason}
	},
	claybot.EventModelCallFailed: func(_ *teller, e claybot.Event) item {
		d := facts[runs.ModelCallFailed](e)
		note := words(d.Class)
		if d.Status != 0 {
			note += " (status " + strconv.Itoa(d.Status) + ")"
		}
		if d.Again {
			note += ", asked again after " + (time.Duration(d.WaitMS) * time.Millisecond).String()
		}
		it := item{Icon: "warn", Title: "A model call failed", Note: note}
		if d.Route != "" {
			it.Title = "A call of " + d.Route + " failed"
		}
		return it
	},
	claybot.EventProviderSwitched: func(_ *teller, e claybot.Event) item {
		d := facts[runs.ProviderSwitched](e)
		return item{Icon: "flag", Title: "Provider changed: " + d.From + " → " + d.To, Note: words(d.Class)}
	},
	claybot.EventContextCompacted: func(_ *teller, e claybot.Event) item {
		d := facts[runs.ContextCompacted](e)
		return item{Icon: "fold", Title: "Compacted earlier messages", Note: "kept the last " + plural(d.Keep, "record", "records"), itemRefs: itemRefs{Usage: d.Tokens}}
	},
	claybot.EventSubagentStarted: func(t *teller, e claybot.Event) item {
		d := facts[runs.SubagentStarted](e)
		return item{Icon: "agents", Title: "Started " + t.subagent(d), itemRefs: itemRefs{Agent: d.Agent}}
	},
	claybot.EventBudgetReached: func(_ *teller, e claybot.Event) item {
		d := facts[runs.BudgetReached](e)
		it := item{Icon: "warn", Title: "Budget spent", Note: budgetNote(d), Tone: "waiting"}
		switch {
		case d.TooSmall:
			it.Title = "Budget too small"
		case d.Limit == "":
			it.Title = "The budget does not allow the call"
		case d.Name == "": // an older version has not recorded which of the two it was
			it.Title = "Budget reached"
		}
		return it
	},
	claybot.EventFallback: func(_ *teller, e claybot.Event) item {
		return item{Icon: "warn", Title: "Plan failed", Out: facts[runs.Fallback](e).Error, Tone: "failed"}
	},
	claybot.EventUndoQueued: undoItem, claybot.EventUndoFinished: undoItem, claybot.EventUndoFailed: undoItem,
}

func undoItem(_ *teller, e claybot.Event) item {
	d := facts[runs.Undo](e)
	it := item{Icon: "reset", Title: undoWords[e.Type] + d.Tool, Note: d.StepID, Out: d.Error}
	if e.Type == claybot.EventUndoFailed {
		it.Tone = "failed"
	}
	return it
}

// budgetNote says which budget was reached, and its state.
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

// subagent names a started agent: by its name, its task, or its id.
func (t *teller) subagent(d runs.SubagentStarted) string {
	task := ""
	if len(t.tasks) > 0 {
		task, t.tasks = t.tasks[0], t.tasks[1:]
	}
	switch {
	case d.Name != "":
		return "subagent " + d.Name
	case task != "":
		return "a subagent: " + excerpt(60, task)
	}
	return "subagent " + excerpt(6, string(d.Agent))
}

// tasksOf are the tasks of the subagents that a call starts, as far as the preview
// of its arguments has them.
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
