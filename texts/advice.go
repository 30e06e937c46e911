package texts

// What an operator can do about the error that ended a run: the end of a sentence after "Fix:".
const (
	FixNoModel  = "name a model in CLAYBOT_MODEL or in the configuration; docs/configuration.md shows how"
	FixContext  = "/new begins a new conversation; a model with a larger window avoids this"
	FixTooMuch  = "ask for less at once, or raise the limit in the profile of the agent"
	FixPrompt   = "correct the prompt of the profile; `claybot doctor` names it"
	FixKey      = "check the API key and the account: OPENAI_API_KEY or ANTHROPIC_API_KEY, or `model` in the configuration; then restart claybot or reload it"
	FixName     = "check the name of the model (CLAYBOT_MODEL) and its address (%s); then restart claybot or reload it"
	FixCredit   = "look at the limits and the credit of the account at the provider; the next message tries again"
	FixWait     = "wait: the provider has a problem of its own; the next message tries again"
	FixAddress  = "check that this machine reaches the address of the model (%s); the next message tries again"
	FixSettings = "check the settings of the model: CLAYBOT_MODEL, %s and `model` in the configuration"
)

// DemoModel names the model that is built in.
const DemoModel = "the built-in demo model"

// Advice is the cause of the error that ended a run, for an operator, and what to do about it;
// fix may be empty.
func (v Voice) Advice(cause, fix string) string {
	text := v.Say("Cause: %s.", cause)
	if fix != "" {
		text += "\n" + v.Say("Fix: %s.", fix)
	}
	return text
}
