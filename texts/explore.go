package texts

// What an agent that explores an application says about what it was asked for.
const (
	ExploreWhat     = "I don't know what to explore. Send me its address, such as https://example.com/, or ask the operator to set explore.url in my profile."
	ExploreScheme   = "I don't open addresses that begin with %s:. Send me an address that begins with http:// or https://."
	ExploreAddress  = "I can't read the address that I am to explore. It must begin with http:// or https://."
	ExplorePassword = "I don't open addresses with a name and a password in them. Send the address without them."
	ExploreNoHosts  = "I may not explore anything yet: the operator sets explore.hosts in my profile, the hosts that I may reach."
	ExploreHost     = "I may not explore %s. I may reach %s. Send me an address there, or ask the operator to add the host to explore.hosts in my profile."
	ExploreSettings = "I can't explore anything: the hosts in my settings are wrong. The operator finds more in the log."
	ExploreFailed   = "I can't explore this: %s."
)

// What its report says.
const (
	ExploredScreens  = "Screens"
	ExploredDeadEnds = "Dead ends"
	ExploredErrors   = "Errors"
	ExploredUntitled = "(no title)"
	ExploredNoModel  = "the model could not be asked; the rule chose"
	ExploredBreak    = "it was interrupted; whether it was done is not known"
)

// Why an exploration ended: the end of a sentence.
const (
	ExploredGoal       = "the goal is reached: “%s”, at “%s”"
	ExploredExhausted  = "everything that was found has been tried"
	ExploredNoProgress = "nothing new was found any more"
	ExploredIterations = "the limit of actions was reached"
	ExploredBudget     = "the budget of the exploration is spent"
	ExploredLimit      = "the limit of screens was reached"
	ExploredCrashes    = "the application crashed again and again"
)

// Explored is the first paragraph of a report: what was explored, what was found, and why
// the exploration ended.
func (v Voice) Explored(what string, screens, actions, deadEnds, errors int, why string) string {
	return v.Say("**Explored %s**: %s, %s, %s, %s.", what, v.Count(int64(screens), "%d screen|%d screens"), v.Actions(actions),
		v.Count(int64(deadEnds), "%d dead end|%d dead ends"), v.Count(int64(errors), "%d error|%d errors")) +
		"\n\n" + v.Say("It ended because %s.", why)
}

// Actions is a number of actions of a screen.
func (v Voice) Actions(n int) string { return v.Count(int64(n), "%d action|%d actions") }

// Untried is a number of actions that were not tried.
func (v Voice) Untried(n int) string { return v.Count(int64(n), "%d not tried|%d not tried") }

// AndMore is the last line of a list that is too long.
func (v Voice) AndMore(n int) string { return v.Count(int64(n), "… and %d more|… and %d more") }
