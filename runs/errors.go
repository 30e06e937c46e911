package runs

import (
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// Codes of the errors that end a run.
const (
	CodeModel      = "model_error"      // no answer from the model, in spite of retries
	CodeRefused    = "model_refused"    // the provider refuses the request or the account
	CodeContext    = "context_too_long" // the conversation does not fit the model
	CodeTooMany    = "too_many_steps"
	CodeRepeating  = "repeating"   // the same calls again and again
	CodeBadCalls   = "bad_calls"   // calls that no tool accepts, round after round
	CodeToolBudget = "tool_budget" // its tools took all the time, or put out all the bytes, that they may
	CodeDeadline   = "deadline"    // the time limit of the run
	CodeNoModel    = "no_model"    // nothing is configured to answer
	CodeOff        = "model_off"   // a bad setting switches the model off; the text says which
	CodeAgentOff   = "agent_off"   // likewise the agent itself
	CodeUnexpected = "internal"    // an error that names no code
	CodePrompt     = "prompt"      // a template of the profile cannot be resolved
	CodeGraph      = "graph"       // a node went where no edge leads
	CodePlan       = "plan"        // the plan is invalid, or a step of it failed
	CodeBudget     = "budget"      // a budget is used up
	CodeFormat     = "format"      // the answer is not the JSON that was asked for
	CodeDevice     = "device"      // what is explored cannot be reached
)

// An Error ends a run: a code for programs, a sentence for the operator
// without secrets, and the cause if there is one.
type Error struct {
	Code string
	Text string
	Err  error
	// Say is the notice for the reader of the run; empty: the usual sentence.
	Say string
}

func (e *Error) Error() string { return e.Code + ": " + e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Off is the end of a run whose model or agent a bad setting switches off.
func Off(e *llm.Error) *Error {
	code := CodeOff
	if e.Agent {
		code = CodeAgentOff
	}
	return &Error{Code: code, Text: e.Text, Err: e}
}

// NoModel is the end of a run that needs a model and has none.
func NoModel() *Error {
	return &Error{Code: CodeNoModel, Text: "no model is configured"}
}

// ModelError is the end of a run whose model call failed.
func ModelError(err error) *Error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return &Error{Code: CodeModel, Text: fmt.Sprintf("the model failed with an error of type %T", err), Err: err}
	}
	code := CodeModel
	switch {
	case e.Class == llm.Budget:
		return &Error{Code: CodeBudget, Text: e.Error(), Err: err, Say: e.Text}
	case e.Class == llm.Off:
		return Off(e)
	case e.Class == llm.Context:
		code = CodeContext
	case e.Class == llm.Permanent && e.Status < 500: // a server that broke has not refused anything
		code = CodeRefused
	}
	return &Error{Code: code, Text: e.Error(), Err: err}
}

// TooLong reports whether a provider refused a request for its length.
func TooLong(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Class == llm.Context
}

// Explain reads any error that ended a run as what is stored about it.
func Explain(err error) claybot.RunError {
	if e, ok := errors.AsType[*Error](err); ok {
		return claybot.RunError{Code: e.Code, Text: e.Text}
	}
	return claybot.RunError{Code: CodeUnexpected, Text: storage.Plain(err)}
}
