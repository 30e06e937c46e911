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
	"github.com/claybot/claybot/texts"
)

// AdviceOn returns, for an operator, the cause of an error that ended a run and the
// next step; empty if the cause is unknown.
func (s *Worker) AdviceOn(v texts.Voice, a claybot.Agent, e *runs.Error) string {
	return adviceOn(v, e, cmp.Or(s.parts.Profiles.Profile(a.Descriptor).Address, "OPENAI_BASE_URL"))
}

// adviceOn is AdviceOn; address is the setting with the address of the model.
func adviceOn(v texts.Voice, e *runs.Error, address string) string {
	if e.Code == runs.CodeOff || e.Code == runs.CodeAgentOff { // its text is the cause and the fix already
		return e.Text
	}
	cause := connectors.OneLine(strings.TrimPrefix(runs.Explain(e).Text, "model: "), 500)
	if cause == "" {
		return ""
	}
	fix := fixOf(v, e, address)
	several := strings.HasPrefix(cause, llm.NoneAnswered)                    // each of them with its own next step
	if before, check, ok := strings.Cut(cause, "; check "); ok && !several { // the cause includes the next step, in English
		check, said, reasoned := strings.Cut(check, ": ") // what the provider said
		cause = before
		if english := v.Language == "" || v.Language == texts.English; english || fix == "" {
			fix = "check " + check
		}
		if m, found := errors.AsType[*llm.Error](e); found && m.Status != 0 {
			code := " (HTTP " + strconv.Itoa(m.Status) + ")"
			said, fix = strings.TrimSuffix(said, code), strings.TrimSuffix(fix, code)
			cause += code
		}
		if reasoned {
			cause += ": " + said
		}
	}
	return v.Advice(strings.TrimRight(cause, "."), strings.TrimRight(fix, "."))
}

// fixOf returns what an operator can do about the error that ended a run. address
// is the setting with the address of the model.
func fixOf(v texts.Voice, e *runs.Error, address string) string {
	if m, ok := errors.AsType[*llm.Error](e); ok {
		return fixOfModel(v, m, address)
	}
	switch e.Code {
	case runs.CodeNoModel:
		return v.In(texts.FixNoModel)
	case runs.CodeContext:
		return v.In(texts.FixContext)
	case runs.CodeTooMany, runs.CodeToolBudget, runs.CodeDeadline:
		return v.In(texts.FixTooMuch)
	case runs.CodePrompt:
		return v.In(texts.FixPrompt)
	}
	return ""
}

func fixOfModel(v texts.Voice, e *llm.Error, address string) string {
	switch {
	case e.Account, e.Status == 401, e.Status == 403:
		return v.In(texts.FixKey)
	case e.Status == 404:
		return v.Say(texts.FixName, address)
	case e.Class == llm.Rate, e.Status == 402:
		return v.In(texts.FixCredit)
	case e.Status >= 500:
		return v.In(texts.FixWait)
	case e.Status == 0 && e.Class == llm.Transient:
		return v.Say(texts.FixAddress, address)
	case e.Class == llm.Permanent:
		return v.Say(texts.FixSettings, address)
	}
	return ""
}
