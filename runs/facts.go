package runs

import (
	"encoding/json"

	"github.com/claybot/claybot"
)

// The data of events. Their JSON names are read by dashboards, scripts and
// sinks; what is added later is optional.
type (
	// NodeStarted: a node of the graph, or a part of the loop, begins its turn.
	NodeStarted struct {
		Node      string `json:"node"`
		Iteration int    `json:"iteration"` // from 1
	}
	// NodeFinished is the second of the pair.
	NodeFinished struct {
		Node      string `json:"node"`
		Iteration int    `json:"iteration"`
		Result    string `json:"result,omitempty"` // short
		MS        int64  `json:"ms"`
	}
	// EdgeTaken: a graph goes from one node to another. Tokens are what the models
	// of the node took, beside those that other events of it have.
	EdgeTaken struct {
		From   string         `json:"from"`
		To     string         `json:"to"`
		Reason string         `json:"reason,omitempty"`
		Tokens *claybot.Usage `json:"tokens,omitempty"`
	}
	// AssistantMessage: the model has answered a step.
	AssistantMessage struct {
		Step   int            `json:"step,omitempty"`
		Text   string         `json:"text"`
		Calls  []CallRef      `json:"calls"`
		Tokens *claybot.Usage `json:"tokens,omitempty"`
		Model  string         `json:"model,omitempty"`
		MS     int64          `json:"ms,omitempty"`
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
		Saved   string `json:"saved,omitempty"` // the file with all of it
		Error   string `json:"error,omitempty"`
		Code    string `json:"code,omitempty"`    // interrupted
		Tainted bool   `json:"tainted,omitempty"` // as the record is
	}
	// ToolWaiting: the call goes on when what it waits for is there.
	ToolWaiting struct {
		CallID string `json:"callId"`
		Tool   string `json:"tool"`
		Reason string `json:"reason"` // approval, children, missing_info, rate
	}
	// AwaitingInput: the run is paused until its answers have come.
	AwaitingInput struct {
		Reason    claybot.AwaitReason `json:"reason,omitempty"`
		Questions []claybot.Question  `json:"questions,omitempty"`
		Answers   []claybot.MessageID `json:"answers"`
		Expires   claybot.Time        `json:"expires"`
	}
	// Answered: a question has an answer, or expired.
	Answered struct {
		QuestionID string            `json:"questionId"`
		Via        claybot.AnswerVia `json:"via"`
		By         string            `json:"by,omitempty"`
		MessageID  claybot.MessageID `json:"messageId,omitempty"` // that said it
	}
	// PlanGenerated: the plan of a run is made or changed.
	PlanGenerated struct {
		Steps []PlannedStep `json:"steps"`
		Diff  string        `json:"diff,omitempty"`
		Mode  string        `json:"mode,omitempty"` // of the policy: preview, approve, auto
	}
	// PlannedStep is one step of a plan.
	PlannedStep struct {
		ID        string          `json:"id"`
		Tool      string          `json:"tool"`
		What      string          `json:"what,omitempty"` // in a few words, for people
		Args      json.RawMessage `json:"args"`
		Risk      string          `json:"risk"` // low or high
		DependsOn []string        `json:"dependsOn,omitempty"`
		// CostMicroUSD is a guess, in millionths of a US dollar.
		CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
	}
	// PlanStep is the data of StepStarted and StepFinished.
	PlanStep struct {
		StepID  string `json:"stepId"`
		Tool    string `json:"tool"`
		Attempt int    `json:"attempt"`
		Status  string `json:"status"`
	}
	// PolicySwitched: the rules of the run changed while it was under way.
	PolicySwitched struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Reason string `json:"reason"`
	}
	// ModelCallFailed: one try of a model call failed. Route is the name of the model that was
	// asked, Class that of the error (transient, rate, permanent, context), and Status that of
	// HTTP, 0 where there was no answer. Again says that the same model is asked again, WaitMS
	// after this.
	ModelCallFailed struct {
		Step   int    `json:"step,omitempty"`
		Route  string `json:"route,omitempty"`
		Try    int    `json:"try"` // of the route, from 1
		Class  string `json:"class"`
		Status int    `json:"status,omitempty"`
		MS     int64  `json:"ms"`
		Again  bool   `json:"again,omitempty"`
		WaitMS int64  `json:"waitMs,omitempty"`
	}
	// ProviderSwitched: another provider is asked.
	ProviderSwitched struct {
		From  string `json:"from"`
		To    string `json:"to"`
		Class string `json:"class"`
	}
	// ContextCompacted: older records were compacted into a summary; Keep of them
	// stay.
	ContextCompacted struct {
		How    string         `json:"how"` // summary
		Keep   int            `json:"keep"`
		Tokens *claybot.Usage `json:"tokens,omitempty"`
	}
	// SubagentStarted: the run has started another agent.
	SubagentStarted struct {
		Agent claybot.AgentID `json:"agent"`
		Name  string          `json:"name,omitempty"`
	}
	// BudgetReached: a budget has no room for the next step. Limit is empty where the
	// budget cannot be kept at all; of a plan, Spent is the estimated cost.
	BudgetReached struct {
		Scope    string `json:"scope"`          // the key of the budget, or ScopePlan
		Name     string `json:"name,omitempty"` // what people call it
		Limit    string `json:"limit"`
		Spent    string `json:"spent"`
		TooSmall bool   `json:"tooSmall,omitempty"` // something is left, but not enough
	}
	// Fallback: the plan failed and its consequences are reported.
	Fallback struct {
		Error string `json:"error"`
	}
	// Undo is the data of UndoQueued, UndoFinished and UndoFailed.
	Undo struct {
		StepID string `json:"stepId"`
		Tool   string `json:"tool"`
		Error  string `json:"error,omitempty"`
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
	// RunCanceled: the run was stopped.
	RunCanceled struct {
		By string `json:"by"`
		// Output is what the run had written, as far as a reply says it: the beginning.
		Output string `json:"output,omitempty"`
	}
)

// Facts is the data of every type of event, as an empty value.
var Facts = map[claybot.EventType]any{
	claybot.EventRunStarted:       MessagesTaken{},
	claybot.EventRunResumed:       MessagesTaken{},
	claybot.EventNodeStarted:      NodeStarted{},
	claybot.EventNodeFinished:     NodeFinished{},
	claybot.EventEdgeTaken:        EdgeTaken{},
	claybot.EventAssistantMessage: AssistantMessage{},
	claybot.EventToolCalled:       ToolStarted{},
	claybot.EventToolSucceeded:    ToolEnded{},
	claybot.EventToolFailed:       ToolEnded{},
	claybot.EventToolWaiting:      ToolWaiting{},
	claybot.EventAwaitingInput:    AwaitingInput{},
	claybot.EventAnswered:         Answered{},
	claybot.EventPlanGenerated:    PlanGenerated{},
	claybot.EventStepStarted:      PlanStep{},
	claybot.EventStepFinished:     PlanStep{},
	claybot.EventPolicySwitched:   PolicySwitched{},
	claybot.EventModelCallFailed:  ModelCallFailed{},
	claybot.EventProviderSwitched: ProviderSwitched{},
	claybot.EventContextCompacted: ContextCompacted{},
	claybot.EventMessagesInjected: MessagesTaken{},
	claybot.EventSubagentStarted:  SubagentStarted{},
	claybot.EventBudgetReached:    BudgetReached{},
	claybot.EventFallback:         Fallback{},
	claybot.EventUndoQueued:       Undo{},
	claybot.EventUndoFinished:     Undo{},
	claybot.EventUndoFailed:       Undo{},
	claybot.EventRunFinished:      RunFinished{},
	claybot.EventRunFailed:        RunFailed{},
	claybot.EventRunCanceled:      RunCanceled{},
}
