package runs

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// PreviewLimit is the most bytes of text an event shows. Events are facts; the
// whole text is in history.
const PreviewLimit = 2 << 10

// EventOf is the one table from records to events. It is pure, so that events
// lost between the two stores can be made again; ok is false for records that
// no event tells of.
func EventOf(r claybot.Record) (ev claybot.Event, ok bool) {
	switch r.Type {
	case claybot.RecordAssistant:
		d := AssistantMessage{Step: r.Step, Text: Preview(r.Text), Calls: []CallRef{}, Tokens: r.Tokens, Model: r.Model, MS: r.MS}
		for _, c := range r.ToolCalls {
			d.Calls = append(d.Calls, CallRef{CallID: c.ID, Tool: c.Name})
		}
		return event(r.Run, claybot.EventAssistantMessage, r.At, d), true
	case claybot.RecordTool:
		d := ToolEnded{CallID: r.ToolCallID, Tool: r.Name, MS: r.MS + r.WaitedMS, Saved: r.Saved, Tainted: r.Tainted}
		if r.OK {
			d.Preview = Preview(r.Text)
			return event(r.Run, claybot.EventToolSucceeded, r.At, d), true
		}
		d.Error = Preview(r.Text)
		if r.Interrupted {
			d.Code = "interrupted"
		}
		return event(r.Run, claybot.EventToolFailed, r.At, d), true
	case claybot.RecordNode:
		if r.Next == r.Name {
			return claybot.Event{}, false // it waits
		}
		return event(r.Run, claybot.EventEdgeTaken, r.At, EdgeTaken{From: r.Name, To: r.Next, Reason: Preview(r.Text), Tokens: r.Tokens}), true
	case claybot.RecordSummary:
		return event(r.Run, claybot.EventContextCompacted, r.At, ContextCompacted{How: "summary", Keep: r.Keep, Tokens: r.Tokens}), true
	case claybot.RecordAnswer:
		if r.Answer == nil {
			return claybot.Event{}, false
		}
		return event(r.Run, claybot.EventAnswered, r.At, Answered{
			QuestionID: r.Answer.Question, Via: r.Answer.Via, By: r.Answer.By, MessageID: r.Answer.Message,
		}), true
	}
	return claybot.Event{}, false
}

// ToolCalled tells that the tool of a call is about to run.
func ToolCalled(run claybot.RunID, call claybot.ToolCall, effect string) claybot.Event {
	return event(run, claybot.EventToolCalled, claybot.Now(), ToolStarted{
		CallID: call.ID, Tool: call.Name, Effect: effect,
		ArgsPreview: Preview(string(call.Input())), Status: "running",
	})
}

// NodeBegan tells that a node of a run begins its nth turn, counted from 1.
func NodeBegan(run claybot.RunID, node string, iteration int) claybot.Event {
	return event(run, claybot.EventNodeStarted, claybot.Now(), NodeStarted{Node: node, Iteration: iteration})
}

// NodeEnded tells that a node has ended its turn, with what came of it in a few
// words.
func NodeEnded(run claybot.RunID, node string, iteration int, result string, took time.Duration) claybot.Event {
	return event(run, claybot.EventNodeFinished, claybot.Now(), NodeFinished{
		Node: node, Iteration: iteration, Result: Preview(result), MS: took.Milliseconds(),
	})
}

// ToolWaits tells that the tool of a call waits: for answers, an approval, or
// its rate.
func ToolWaits(run claybot.RunID, call claybot.ToolCall, reason claybot.AwaitReason) claybot.Event {
	return event(run, claybot.EventToolWaiting, claybot.Now(), ToolWaiting{CallID: call.ID, Tool: call.Name, Reason: string(reason)})
}

// Planned tells that the plan of a run is made.
func Planned(run claybot.RunID, steps []PlannedStep, diff, mode string) claybot.Event {
	return event(run, claybot.EventPlanGenerated, claybot.Now(), PlanGenerated{Steps: steps, Diff: Preview(diff), Mode: mode})
}

// StepBegan tells that a step of a plan is tried for the nth time.
func StepBegan(run claybot.RunID, step, tool string, attempt int) claybot.Event {
	return event(run, claybot.EventStepStarted, claybot.Now(), PlanStep{StepID: step, Tool: tool, Attempt: attempt, Status: "running"})
}

// StepEnded tells how a try of a step ended: ok, failed, retry, or why it was
// skipped.
func StepEnded(run claybot.RunID, step, tool string, attempt int, status string) claybot.Event {
	return event(run, claybot.EventStepFinished, claybot.Now(), PlanStep{StepID: step, Tool: tool, Attempt: attempt, Status: Preview(status)})
}

// FellBack tells that a plan failed.
func FellBack(run claybot.RunID, why string) claybot.Event {
	return event(run, claybot.EventFallback, claybot.Now(), Fallback{Error: Preview(why)})
}

// UndoTold tells how far the undo of an effect is: t is UndoQueued, UndoFinished
// or, with what went wrong, UndoFailed.
func UndoTold(run claybot.RunID, t claybot.EventType, u claybot.Undo, fault string) claybot.Event {
	return event(run, t, claybot.Now(), Undo{StepID: u.Step, Tool: u.Tool, Error: Preview(fault)})
}

// Started tells that a run has started another agent.
func Started(run claybot.RunID, agent claybot.AgentID, name string) claybot.Event {
	return event(run, claybot.EventSubagentStarted, claybot.Now(), SubagentStarted{Agent: agent, Name: name})
}

// CallFailed tells that a try of a model call failed.
func CallFailed(run claybot.RunID, at claybot.Time, d ModelCallFailed) claybot.Event {
	return event(run, claybot.EventModelCallFailed, at, d)
}

// ProviderChanged tells that another provider is asked.
func ProviderChanged(run claybot.RunID, d ProviderSwitched) claybot.Event {
	return event(run, claybot.EventProviderSwitched, claybot.Now(), d)
}

// Switched tells that the rules of a run changed while it was under way.
func Switched(run claybot.RunID, from, to, reason string) claybot.Event {
	return event(run, claybot.EventPolicySwitched, claybot.Now(), PolicySwitched{From: from, To: to, Reason: reason})
}

// Paused tells that a run waits.
func Paused(run claybot.RunID, a claybot.Awaiting) claybot.Event {
	return event(run, claybot.EventAwaitingInput, claybot.Now(), AwaitingInput{
		Reason: a.Reason, Questions: a.Questions, Answers: a.Answers, Expires: a.Until,
	})
}

// Finished is the terminal event of a run that ended well.
func Finished(run claybot.RunID, output string, usage claybot.Usage) claybot.Event {
	return event(run, claybot.EventRunFinished, claybot.Now(), RunFinished{Output: Preview(output), Usage: usage})
}

// Failed is the terminal event of a run that ended with an error after step
// model calls.
func Failed(run claybot.RunID, err claybot.RunError, step int) claybot.Event {
	return event(run, claybot.EventRunFailed, claybot.Now(), RunFailed{Code: err.Code, Error: Preview(err.Text), Step: step})
}

// Stopped is the terminal event of a run that by ended (user, reset or operator), with
// what a reply says of the answer that it had begun.
func Stopped(run claybot.RunID, by, output string) claybot.Event {
	return event(run, claybot.EventRunCanceled, claybot.Now(), RunCanceled{By: by, Output: Preview(output)})
}

func event(run claybot.RunID, t claybot.EventType, at claybot.Time, data any) claybot.Event {
	raw, _ := json.Marshal(data) // the types above always marshal
	return claybot.Event{V: 1, Run: run, Type: t, At: at, Data: raw}
}

// Preview cuts text at a rune border to at most PreviewLimit bytes.
func Preview(text string) string {
	const mark = "…"
	if len(text) <= PreviewLimit {
		return text
	}
	end := PreviewLimit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// DataOf reads the data of an event, as far as it can be read.
func DataOf[T any](e claybot.Event) T {
	var d T
	_ = json.Unmarshal(e.Data, &d) // what cannot be read stays empty
	return d
}
