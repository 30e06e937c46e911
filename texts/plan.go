package texts

import "strings"

// What an agent that plans says instead of a plan or of its results.
const (
	PlanNoIntent    = "I couldn't find out what you want: %s. Please say it again in other words."
	PlanCatalogue   = "That is none of the things that I do here. I do: %s."
	PlanIntentGone  = "The settings have changed meanwhile: there is no %s any more. Nothing was run; please ask again."
	PlanUnusable    = "The plan cannot be used: %s. Nothing was run; please ask again, perhaps in other words."
	PlanUnreachable = "No person can be asked for what is missing: %s. Nothing was run."
	PlanUnanswered  = "There is no answer to %s, so nothing was run. Please ask again when you know it."
	PlanQuiet       = "It is quiet until %s, so nothing was run. Please ask again after that."
	PlanNothing     = "There is nothing to do."
	PlanNoneRan     = "Nothing was run."
	PlanHeld        = "Nothing was run: %s."
	PlanAskNow      = "It is quiet until %[1]s. Run the plan now? Without an answer it runs at %[1]s; with no, it is dropped."
	PlanStopped     = "The plan stopped: %s"
	PlanFailed      = "%s failed: %s"
	FlowGone        = "The workflow %s could not be started: its file is gone or cannot be read."
	FlowFailed      = "The workflow %s could not be finished; it failed at the step %s."
	FlowAgain       = "May the workflow %s do its step %s again? It may have acted before."
	PlanNotRun      = "not run: %s"
	PlanLasting     = "%d of the effects cannot be undone.|%d of the effects cannot be undone."
	UndoNothing     = "There is nothing to undo."
)

// The titles of lists, and what they say about steps.
const (
	PlanSteps    = "The plan:"
	PlanDone     = "Done:"
	PlanSkipped  = "Not run:"
	PlanUndo     = "This can be undone with /undo:"
	Undone       = "Undone:"
	UndoFailed   = "Could not be undone:"
	UndoHeld     = "Would be undone:"
	UndoLasting  = "Cannot be undone:"
	PlanHighRisk = "high risk"
	PlanAfter    = "after %s"
	PlanCost     = "about %s"
)

// Why a step asks for an approval: sentences.
const (
	PlanStep      = "It is %s of the plan."
	PlanStepOf    = "It is %s of the plan: %s"
	PlanUndoes    = "It undoes: %s"
	PlanDiscloses = "If you approve, %s. %s"
	PlanArguments = "The arguments are those of %s."
)

// Why a plan or a step is not run: the end of a sentence. Agents and programs read them in
// English, people as PlanReason says them.
const (
	PlanNotApproved   = "not approved"
	PlanDenied        = "not approved: %s"
	PlanExpired       = "not approved in time"
	PlanNobody        = "not approved: no person can be asked"
	PlanVoid          = "the approval is void: it was for another action"
	PlanNoApprover    = "not approved: the person who said yes may not approve it any more"
	PlanTooFew        = "not approved by %s different people"
	PlanPreview       = "plans are only shown here"
	PlanQuietUntil    = "it is quiet until %s"
	PlanNotNow        = "you did not want it during quiet hours"
	PlanBudget        = "it may cost %s, and the budget is %s"
	PlanForbidden     = "the policy does not allow it"
	PlanGone          = "it cannot be done any more"
	PlanDependsFailed = "%s failed"
	PlanDependsNotRun = "%s was not run"
)

// planReasons are the texts that PlanReason knows; what fits an earlier one is not a later one.
var planReasons = []string{
	PlanExpired, PlanNobody, PlanVoid, PlanNoApprover, PlanTooFew, PlanPreview, PlanQuietUntil, PlanNotNow, PlanBudget,
	PlanNotApproved, PlanDenied, PlanForbidden, PlanGone, PlanDependsFailed, PlanDependsNotRun,
}

// PlanReason says why a plan or a step was not run, which is stored in English. Another reason,
// such as that of a rule, stays as it is.
func (v Voice) PlanReason(english string) string {
	for _, text := range planReasons {
		if values, ok := valuesOf(english, text); ok {
			if text == PlanBudget {
				for i := range values {
					values[i] = v.dollars(values[i].(string))
				}
			}
			return v.Say(text, values...)
		}
	}
	return english
}

// valuesOf takes the values out of what a text, whose values are all %s, became with them.
func valuesOf(said, text string) (values []any, ok bool) {
	parts := strings.Split(text, "%s")
	rest, ok := strings.CutPrefix(said, parts[0])
	for i, part := range parts[1:] {
		at := strings.Index(rest, part)
		if i == len(parts)-2 { // the last value is what is left
			at = len(rest) - len(part)
		}
		if !ok || at < 0 || !strings.HasPrefix(rest[at:], part) {
			return nil, false
		}
		values, rest = append(values, rest[:at]), rest[at+len(part):]
	}
	return values, ok && rest == ""
}
