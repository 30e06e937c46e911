package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// repairAnyway repairs also when the pass is to end at once: how the run ends
// must tell what it did.
func (p *pass) repairAnyway(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	err := p.repair(ctx)
	p.repaired = err == nil
	return err
}

// repair brings history and events of a run together again. History is written
// first, so that a crash can leave two gaps only: messages of the run without a
// record, and one record without its event.
func (p *pass) repair(ctx context.Context) error {
	known := make(map[claybot.MessageID]bool)
	var records []claybot.Record // of this run
	for _, r := range p.history.Records() {
		if r.MessageID != "" {
			known[r.MessageID] = true
		}
		if r.Run == p.run.ID {
			records = append(records, r)
		}
	}
	var missing []claybot.Record
	for _, m := range p.messages {
		if !known[m.ID] {
			missing = append(missing, p.userRecord(m))
		}
	}
	// Buffered only: should a crash lose them, they are made again from the
	// messages that the run is bound to.
	if err := p.history.Buffer(ctx, missing...); err != nil {
		return fmt.Errorf("append history: %w", err)
	}
	if p.run.Attempts == 1 && len(records) == 0 {
		return nil // a new run has nothing to compare
	}
	said, end, err := p.hears(ctx, records)
	if err != nil {
		return err
	}
	if err := p.repairEvents(ctx, append(records, said...)); err != nil {
		return err
	}
	return end
}

// repairEvents adds the events that records of the run lack, and learns which
// tools an earlier pass had started.
func (p *pass) repairEvents(ctx context.Context, records []claybot.Record) error {
	p.inDoubt, p.begun = make(map[string]claybot.Time), make(map[runs.NodeStarted]bool)
	have := 0
	for ev, err := range p.Reader.Events(ctx, p.run.ID, 0) {
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		switch ev.Type {
		case claybot.EventAssistantMessage, claybot.EventToolSucceeded, claybot.EventToolFailed, claybot.EventContextCompacted, claybot.EventAnswered, claybot.EventEdgeTaken:
			have++
		case claybot.EventSubagentStarted:
			p.firstStart(ev) // nothing else works on the pass yet
		case claybot.EventNodeStarted:
			p.begun[nodeOf(ev)] = true
		case claybot.EventNodeFinished:
			delete(p.begun, nodeOf(ev))
		case claybot.EventToolCalled:
			var called runs.ToolStarted
			if err := json.Unmarshal(ev.Data, &called); err != nil {
				return fmt.Errorf("read event %d: %w", ev.Seq, err)
			}
			if p.inDoubt[called.CallID] == 0 {
				p.inDoubt[called.CallID] = max(ev.At, 1)
			}
		}
	}
	for _, r := range records {
		p.note(r)
		p.count(r)
		ev, ok := runs.EventOf(r)
		if !ok {
			continue
		}
		if have--; have < 0 {
			if ev.Type == claybot.EventEdgeTaken { // over which it left the node that it was in
				p.endNodes()
			}
			p.add(ev)
		}
	}
	if have > 0 {
		return &runs.Error{Code: "internal/history-behind", Text: fmt.Sprintf("history lacks %d records that have events", have)}
	}
	return p.commit(ctx)
}

// count adds what an earlier pass used to the usage of the run.
func (p *pass) count(r claybot.Record) {
	p.spend(r)
	if r.Tokens != nil {
		p.usage = p.usage.Add(*r.Tokens)
	}
	if r.Tokens != nil && !isCharge(r) {
		p.context = r.Tokens.Input
	}
	if r.Type == claybot.RecordTool {
		p.usage.ToolCalls++
	}
}
