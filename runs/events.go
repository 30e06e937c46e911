package runs

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// PreviewLimit is the most bytes of text an event shows. Events are facts; the
// whole text is in history.
const PreviewLimit = 2 << 10

// The data of the events that are made here. Their JSON names are read by
// dashboards and scripts.
type (
	// AssistantMessage: the model has answered a step.
	AssistantMessage struct {
		Step   int            `json:"step,omitempty"`
		Text   string         `json:"text"`
		Calls  []CallRef      `json:"calls"`
		Tokens *claybot.Usage `json:"tokens,omitempty"`
		Model  string         `json:"model,omitempty"`
	}
	// CallRef names a call of an AssistantMessage.
	CallRef struct {
		CallID string `json:"callId"`
		Tool   string `json:"tool"`
	}
	// ToolStarted is the data of ToolCalled.
	ToolStarted struct {
		CallID      string `json:"callId"`
		Tool        string `json:"tool"`
		Effect      string `json:"effect"`
		ArgsPreview string `json:"argsPreview"`
		Status      string `json:"status"` // running
	}
	// ToolEnded is the data of ToolSucceeded, with Preview, and of ToolFailed,
	// with Error and perhaps Code.
	ToolEnded struct {
		CallID  string `json:"callId"`
		Tool    string `json:"tool"`
		MS      int64  `json:"ms"`
		Preview string `json:"preview,omitempty"`
		Error   string `json:"error,omitempty"`
		Code    string `json:"code,omitempty"` // interrupted
	}
	// Summarized: older records were folded into a summary; Keep of them stay.
	Summarized struct {
		Keep   int            `json:"keep"`
		Tokens *claybot.Usage `json:"tokens,omitempty"`
	}
	// RunAwaiting: the run is paused until its answers have come.
	RunAwaiting struct {
		Answers []claybot.MessageID `json:"answers"`
		Until   claybot.Time        `json:"until"`
	}
	// RunFinished: the run ended well.
	RunFinished struct {
		Output string        `json:"output"`
		Usage  claybot.Usage `json:"usage"`
	}
	// RunFailed: the run ended with an error after Step model calls.
	RunFailed struct {
		Code  string `json:"code"`
		Error string `json:"error"`
		Step  int    `json:"step"`
	}
	// RunCanceled: somebody ended the run.
	RunCanceled struct {
		By string `json:"by"`
	}
)

// EventOf is the one table from records to events. It is pure, so that events
// lost between the two stores can be made again; ok is false for records that
// no event tells of.
func EventOf(r claybot.Record) (ev claybot.Event, ok bool) {
	switch r.Type {
	case claybot.RecordAssistant:
		d := AssistantMessage{Step: r.Step, Text: Preview(r.Text), Calls: []CallRef{}, Tokens: r.Tokens, Model: r.Model}
		for _, c := range r.ToolCalls {
			d.Calls = append(d.Calls, CallRef{CallID: c.ID, Tool: c.Name})
		}
		return event(r.Run, claybot.EventAssistantMessage, r.At, d), true
	case claybot.RecordTool:
		d := ToolEnded{CallID: r.ToolCallID, Tool: r.Name, MS: r.MS}
		if r.OK {
			d.Preview = Preview(r.Text)
			return event(r.Run, claybot.EventToolSucceeded, r.At, d), true
		}
		d.Error = Preview(r.Text)
		if r.Interrupted {
			d.Code = "interrupted"
		}
		return event(r.Run, claybot.EventToolFailed, r.At, d), true
	case claybot.RecordSummary:
		return event(r.Run, claybot.EventSummarized, r.At, Summarized{Keep: r.Keep, Tokens: r.Tokens}), true
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

// Paused tells that a run waits.
func Paused(run claybot.RunID, a claybot.Awaiting) claybot.Event {
	return event(run, claybot.EventRunAwaiting, claybot.Now(), RunAwaiting{Answers: a.Answers, Until: a.Until})
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

// Canceled is the terminal event of a run that somebody ended: user, reset or
// operator.
func Canceled(run claybot.RunID, by string) claybot.Event {
	return event(run, claybot.EventRunCanceled, claybot.Now(), RunCanceled{By: by})
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
