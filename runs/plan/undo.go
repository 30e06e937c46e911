package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// takeBack makes a step of each effect that can be taken back, the last one
// first. Effects that the same call takes back are one step.
func takeBack(s *state) {
	made := make(map[string]int) // places by digest
	for _, u := range slices.Backward(undone(s.Turn).Effects) {
		if u.Call == nil || !json.Valid(u.Call.Input()) {
			s.Scratch.Lasting = append(s.Scratch.Lasting, u)
			continue
		}
		call := claybot.ToolCall{Name: u.Call.Name, Args: u.Call.Args}
		sum := digest(s, call)
		if i, twice := made[sum]; twice {
			s.Scratch.Steps[i].Effects = append(s.Scratch.Steps[i].Effects, u)
			continue
		}
		made[sum] = len(s.Scratch.Steps)
		s.Scratch.Steps = append(s.Scratch.Steps, Step{
			PlannedStep: runs.PlannedStep{ID: fmt.Sprintf("undo-%02d", len(s.Scratch.Steps)+1), Tool: call.Name, Args: call.Input()},
			Effects:     []claybot.Undo{u},
		})
	}
}

// queued tells what is about to be taken back.
func queued(ctx context.Context, s *state, _ Policy) (string, error) {
	if s.Scratch.Queued {
		return "", nil
	}
	s.Scratch.Queued = true
	var events []claybot.Event
	for _, st := range s.Scratch.Steps {
		events = append(events, undoEvents(s, claybot.EventUndoQueued, st, "")...)
	}
	return "", tell(ctx, s, events...)
}

// undoEvents tell how far a step is with each effect that it takes back.
func undoEvents(s *state, t claybot.EventType, st Step, fault string) []claybot.Event {
	events := make([]claybot.Event, len(st.Effects))
	for i, u := range st.Effects {
		events[i] = runs.UndoTold(s.Turn.Run.ID, t, u, fault)
	}
	return events
}

// report tells what was taken back, what failed, and what cannot be taken back.
func report(ctx context.Context, s *state) (string, error) {
	return say(s, func() (claybot.Record, error) {
		return claybot.Record{Text: undoText(texts.Of(ctx), s)}, nil
	})
}

func undoText(v texts.Voice, s *state) string {
	results := make(map[string]claybot.Record)
	for _, r := range s.Records() {
		if r.Type == claybot.RecordTool {
			results[stepOf(r.ToolCallID)] = r
		}
	}
	var done, failed, held, lasting []string
	for _, st := range s.Scratch.Steps {
		r, ran := results[st.ID]
		switch {
		case s.Scratch.Held != "":
			held = append(held, st.name(v))
		case ran && r.OK:
			done = append(done, st.name(v))
		case ran:
			failed = append(failed, st.name(v)+": "+result(v, r.Text))
		}
	}
	for _, u := range s.Scratch.Lasting {
		lasting = append(lasting, v.Effect(u))
	}
	text := list(v.In(texts.Undone), done) + list(v.In(texts.UndoFailed), failed) + skippedList(v, s) +
		list(v.In(texts.UndoHeld), held)
	if s.Scratch.Held != "" {
		text += "\n\n" + v.Say(texts.PlanHeld, v.PlanReason(s.Scratch.Held))
	}
	text += list(v.In(texts.UndoLasting), lasting)
	return orElse(strings.TrimSpace(text), v.In(texts.UndoNothing))
}

// undone is the message of a run that takes back what another one did.
func undone(t *runs.Turn) claybot.Undoing {
	for _, m := range t.Messages {
		if m.Undo != nil {
			return *m.Undo
		}
	}
	return claybot.Undoing{}
}
