package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// A conversation is the history of the agent as the pass reads and continues it. A
// record is durable before its event, which is committed with the next step and rebuilt from
// the history after a crash in between; or both are stored with the end of the run.
type conversation struct {
	job     *job
	history storage.History // nil: it cannot be read
	tally   *tally
	answer  *answer
	events  *eventBuffer

	hidden   func(*claybot.Record) bool // records that the engine does not see
	inDoubt  map[string]claybot.Time    // tool calls that an earlier pass started, and when
	repaired bool                       // the work of earlier passes is known
	graph    bool                       // the engine is a graph: its state is in the records
	held     bool                       // a final record is left to the end of the run
}

// open sets the history, and which records are hidden.
func (c *conversation) open(h storage.History) {
	c.history = h
	if out := leftOut(h.Records()); out != nil {
		hidden := c.hidden
		c.hidden = func(r *claybot.Record) bool { return hidden(r) || out.has(r) }
	}
}

// remembered returns the history that the engine sees.
func (c *conversation) remembered() []claybot.Record { return visible(c.history.Records(), c.hidden) }

// append makes records durable without events.
func (c *conversation) append(ctx context.Context, records ...claybot.Record) error {
	if err := c.history.Append(ctx, records...); err != nil {
		return fmt.Errorf("append history: %w", err)
	}
	c.held = false
	return nil
}

// hold leaves records to the end of the run.
func (c *conversation) hold(ctx context.Context, records ...claybot.Record) error {
	if err := c.history.Buffer(ctx, records...); err != nil {
		return fmt.Errorf("append history: %w", err)
	}
	c.held = true
	return nil
}

// final reports whether a record ends the run of a chat and can be stored with its end: a
// crash before that lets the model answer again. If messages joined the run meanwhile, it is
// stored with what follows.
func (c *conversation) final(r claybot.Record) bool {
	_, defers := c.history.(storage.Deferring)
	return defers && r.Type == claybot.RecordAssistant && len(r.ToolCalls) == 0 && c.job.engine() == claybot.EngineReact
}

// flush makes a final record durable, before an event that tells of it.
func (c *conversation) flush(ctx context.Context) error {
	if !c.held {
		return nil
	}
	return c.append(ctx)
}

// deferred are the records that the end of the run stores.
func (c *conversation) deferred() (d storage.Deferred) {
	if h, defers := c.history.(storage.Deferring); defers {
		d = h.Deferred()
	}
	return d
}

// settle notes that deferred records are stored.
func (c *conversation) settle(d storage.Deferred) {
	if h, defers := c.history.(storage.Deferring); defers {
		h.Settle(d)
	}
}

// record makes one record of the engine durable, and adds its event.
func (c *conversation) record(ctx context.Context, r claybot.Record) error {
	r.Run, r.Aside = c.job.run.ID, c.job.forgets()
	if r.Type == claybot.RecordSummary {
		r.Keep = keptInFile(c.history.Records(), c.hidden, r.Keep)
	}
	if r.At == 0 {
		r.At = claybot.Now()
	}
	store := c.append
	if c.final(r) {
		store = c.hold
	}
	if err := store(ctx, r); err != nil {
		return err
	}
	c.note(r)
	c.tally.called(r)
	if ev, ok := runs.EventOf(r); ok {
		c.events.add(ev)
	}
	return nil
}

// note collects from a record what the end of the run needs.
func (c *conversation) note(r claybot.Record) {
	c.answer.note(r)
	if r.Undo != nil {
		c.tally.affect(*r.Undo)
	}
	c.graph = c.graph || r.Change != nil
}

// Used implements runs.Costs.
func (c *conversation) Used(u claybot.Usage) { c.tally.used(u) }

// Lost implements runs.Costs.
func (c *conversation) Lost(model string, u claybot.Usage) {
	u.LLMCalls = max(u.LLMCalls, 1)
	c.charge(model, "a call of the model came to nothing", u)
}

// charge counts usage without a record of its own. It adds a note to the history, because
// the totals of a run are computed from its records; models do not see the note.
func (c *conversation) charge(model, text string, u claybot.Usage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.job.box.Context()), storeTime)
	defer cancel()
	note := c.job.note("info", text)
	note.Model, note.Tokens, note.Aside = model, &u, c.job.forgets()
	if err := c.append(ctx, note); err != nil {
		c.job.broken = err
		return
	}
	if c.repaired { // otherwise repair counts it
		c.tally.usage = c.tally.usage.Add(u)
		c.tally.called(note)
	}
}

// tainted reports whether the run has read untrusted content, which also taints its
// messages to other agents.
func (c *conversation) tainted() bool { return c.history != nil && tools.Tainted(c.history.Records()) }

// private is tainted for what not everybody may read.
func (c *conversation) private() bool { return c.history != nil && tools.Private(c.history.Records()) }

// ofRun returns the records of the run, and its messages without a record.
func (c *conversation) ofRun() (records, missing []claybot.Record) {
	mine := c.job.messages
	known := make([]bool, len(mine))
	all := c.history.Records()
	for i := range all {
		r := &all[i]
		for k := 0; r.MessageID != "" && k < len(mine); k++ {
			known[k] = known[k] || mine[k].ID == r.MessageID
		}
		if r.Run == c.job.run.ID {
			records = append(records, *r)
		}
	}
	for k := range mine {
		if !known[k] {
			missing = append(missing, c.job.userRecord(mine[k]))
		}
	}
	return records, missing
}

// repair adds the missing events of the run's records, and reads from the stored
// events which tools an earlier pass had started.
func (c *conversation) repair(ctx context.Context, stored storage.RunReader, records []claybot.Record) error {
	c.inDoubt, c.events.open = make(map[string]claybot.Time), make(map[runs.NodeStarted]bool)
	have := 0
	for ev, err := range stored.Events(ctx, c.job.run.ID, 0) {
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		switch ev.Type {
		case claybot.EventAssistantMessage, claybot.EventToolSucceeded, claybot.EventToolFailed, claybot.EventContextCompacted, claybot.EventAnswered, claybot.EventEdgeTaken:
			have++
		case claybot.EventSubagentStarted:
			c.events.firstStart(ev) // no concurrent access yet
		case claybot.EventNodeStarted:
			c.events.open[nodeOf(ev)] = true
		case claybot.EventNodeFinished:
			delete(c.events.open, nodeOf(ev))
		case claybot.EventToolCalled:
			var called runs.ToolStarted
			if err := json.Unmarshal(ev.Data, &called); err != nil {
				return fmt.Errorf("read event %d: %w", ev.Seq, err)
			}
			c.tally.started(called.Effect)
			if c.inDoubt[called.CallID] == 0 {
				c.inDoubt[called.CallID] = max(ev.At, 1)
			}
		}
	}
	for _, r := range records {
		c.note(r)
		c.tally.earlier(r)
		ev, ok := runs.EventOf(r)
		if !ok {
			continue
		}
		if have--; have < 0 {
			if ev.Type == claybot.EventEdgeTaken { // the edge by which it left its graph node
				c.events.endNodes()
			}
			c.events.add(ev)
		}
	}
	if have > 0 {
		return &runs.Error{Code: "internal/history-behind", Text: fmt.Sprintf("history lacks %d records that have events", have)}
	}
	return c.events.commit(ctx, true)
}

// unanswered returns the questions of the run without an answer.
func (c *conversation) unanswered() (open []claybot.Question) {
	if c.history == nil {
		return nil
	}
	answered := make(map[string]bool)
	all := c.history.Records()
	for i := len(all) - 1; i >= 0; i-- { // an answer comes after its question
		switch r := &all[i]; {
		case r.Run != c.job.run.ID:
		case r.Type == claybot.RecordAnswer && r.Answer != nil:
			answered[r.Answer.Question] = true
		case r.Type == claybot.RecordQuestion && r.Question != nil && !answered[r.Question.ID]:
			open = append(open, *r.Question)
		}
	}
	slices.Reverse(open)
	return open
}

// result returns the output of a graph so far as JSON; nil for other engines, and for an
// output too large to store with the run.
func (c *conversation) result() json.RawMessage {
	if !c.graph {
		return nil
	}
	b, err := json.Marshal(runs.OutputOf(c.history.Records(), c.job.run.ID))
	if err != nil || len(b) > maxResult {
		c.job.log.Warn("output too large, kept in history only", "bytes", len(b), "err", err)
		return nil
	}
	return b
}
