package worker

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// AdviceOn returns, for an operator, the cause of an error that ended a run and the
// next step; empty if the cause is unknown.
func (s *Worker) AdviceOn(a claybot.Agent, e *runs.Error) string {
	if e.Code == runs.CodeOff || e.Code == runs.CodeAgentOff { // its text is the cause and the fix already
		return e.Text
	}
	cause := connectors.OneLine(strings.TrimPrefix(runs.Explain(e).Text, "model: "), 500)
	if cause == "" {
		return ""
	}
	fix := fixOf(e, cmp.Or(s.parts.Profiles.Profile(a.Descriptor).Address, "OPENAI_BASE_URL"))
	if before, check, ok := strings.Cut(cause, "; check "); ok { // the cause includes the next step
		cause, fix = before, "check "+check
		if m, found := errors.AsType[*llm.Error](e); found && m.Status != 0 {
			cause, fix = before+" (HTTP "+strconv.Itoa(m.Status)+")", strings.TrimSuffix(fix, " (HTTP "+strconv.Itoa(m.Status)+")")
		}
	}
	text := "Cause: " + strings.TrimRight(cause, ".") + "."
	if fix != "" {
		text += "\nFix: " + strings.TrimRight(fix, ".") + "."
	}
	return text
}

// fixOf returns what an operator can do about the error that ended a run. address
// is the setting with the address of the model.
func fixOf(e *runs.Error, address string) string {
	if m, ok := errors.AsType[*llm.Error](e); ok {
		return fixOfModel(m, address)
	}
	switch e.Code {
	case runs.CodeNoModel:
		return "name a model in CLAYBOT_MODEL or in the configuration; docs/configuration.md shows how."
	case runs.CodeContext:
		return "/new begins a new conversation; a model with a larger window avoids this."
	case runs.CodeTooMany, runs.CodeToolBudget, runs.CodeDeadline:
		return "ask for less at once, or raise the limit in the profile of the agent."
	case runs.CodePrompt:
		return "correct the prompt of the profile; `claybot doctor` names it."
	}
	return ""
}

func fixOfModel(e *llm.Error, address string) string {
	switch {
	case e.Account, e.Status == 401, e.Status == 403:
		return "check the API key and the account: OPENAI_API_KEY or ANTHROPIC_API_KEY, or `model` in the configuration; then restart claybot or reload it."
	case e.Status == 404:
		return "check the name of the model (CLAYBOT_MODEL) and its address (" + address + "); then restart claybot or reload it."
	case e.Class == llm.Rate, e.Status == 402:
		return "look at the limits and the credit of the account at the provider; the next message tries again."
	case e.Status >= 500:
		return "wait: the provider has a problem of its own; the next message tries again."
	case e.Status == 0 && e.Class == llm.Transient:
		return "check that this machine reaches the address of the model (" + address + "); the next message tries again."
	case e.Class == llm.Permanent:
		return "check the settings of the model: CLAYBOT_MODEL, " + address + " and `model` in the configuration."
	}
	return ""
}
