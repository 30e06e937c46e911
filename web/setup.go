package web

import (
	"context"
	"net/http"
	"time"

	"github.com/claybot/claybot/storage"
)

// Setup sets claybot up step by step, by the same steps as claybot setup. It changes keys that only
// the machine of claybot may change, so all but Begun return ErrSetupElsewhere unless Here.
type Setup interface {
	// Begun reports whether claybot is set up, without asking anything outside.
	Begun(ctx context.Context) SetupState
	// Step returns how far a step is. It asks the provider or platform whether what is set works,
	// unless it has asked since the last change, and goes on with a pairing that has begun.
	Step(ctx context.Context, name string) (SetupStep, error)
	// Models lists the models that the provider of an answer has. Nothing is stored.
	Models(ctx context.Context, in SetupAnswer) (SetupModels, error)
	// Answer checks and stores an answer, has claybot apply it, and returns what it found. It returns
	// ErrSetupStale for an answer to a step that has been changed since, and a Problem for one that
	// is wrong: then nothing of it is stored.
	Answer(ctx context.Context, in SetupAnswer) ([]SetupNote, error)
}

// The steps of a setup.
const (
	SetupModel     = "model"
	SetupTelegram  = "telegram"
	SetupSlack     = "slack"
	SetupDiscord   = "discord"
	SetupBudget    = "budget"
	SetupWorkspace = "workspace"
)

// SetupSteps are the steps in their order.
var SetupSteps = []string{SetupModel, SetupTelegram, SetupSlack, SetupDiscord, SetupBudget, SetupWorkspace}

// ErrSetupElsewhere is of a setup that is not on the machine of claybot.
var ErrSetupElsewhere error = &Problem{
	Status: http.StatusForbidden, Code: "local",
	Message: "Setup decides where keys and messages go, so it needs a browser on the machine of claybot that has logged in there.",
	Fix:     "Run on that machine: claybot setup",
}

// ErrSetupStale is of an answer to a step that has been changed since the page was made.
var ErrSetupStale error = &Problem{
	Status: http.StatusPreconditionFailed, Code: "stale", Message: "This step has been changed meanwhile, in another window or on the terminal; nothing was changed.",
	Fix: "Reload the page to see what is set now.",
}

// A SetupState is how far the setup is.
type SetupState struct {
	Demo bool            // the built-in demo model answers
	Set  map[string]bool // the steps that the configuration has settings of
	// Since is when the model was set here for the last time; zero if it never was.
	Since time.Time
}

// A SetupStep is how far a step is.
type SetupStep struct {
	Name    string
	Version string      // of its settings, for SetupAnswer
	Set     bool        // it has settings
	Wrong   string      // why what is set does not work; empty if it does
	Notes   []SetupNote // what was found
	Has     []string    // the settings that it has, of those that it needs: of Slack, one or both tokens
	Value   string      // what is set: the name of the model, the budgets, the provider of workspaces
	Options []string    // models that the provider lists
	Link    string      // where to go next: Slack's form for the app, Discord's page to invite the bot
	Ollama  string      // its address, if it runs on this machine
	// Providers are those of models, besides OpenAI and Anthropic, in their order.
	Providers []SetupProvider
	Pairing   *SetupPairing
}

// A SetupProvider is a provider of models that has a name.
type SetupProvider struct {
	Name, Title string
	Example     string // of an address, which it needs; empty if it has one
}

// A SetupNote is something that was found.
type SetupNote struct {
	Good bool // else it needs a look
	Text string
}

// A SetupPairing is how far the pairing of the owner with a bot is.
type SetupPairing struct {
	Operators []string // of this bot; then it is done
	// Invitation is a link or a code that the page alone shows; nil for none.
	Invitation *Invitation
	Picture    SetupPicture // of the link
	Wrong      string       // why there is none, or why it does not go on
	// People have access, and one of them may be the owner: an earlier setup may have ended early.
	People []storage.Grant
}

// A SetupPicture is a QR code: a path of squares in a square of a size. The zero one is none.
type SetupPicture struct {
	Size int
	Path string
}

// SetupModels are the models of a provider.
type SetupModels struct {
	Names []string
	Usual string // that to begin with
}

// A SetupAnswer answers a step.
type SetupAnswer struct {
	Step    string
	By      string
	Version string // of the step that it answers, see SetupStep
	// Of the model: its provider, the address of its API if that is not the provider's own, its name,
	// and whether a key of the environment may go to that address.
	Provider, Address, Model string
	Consent                  bool
	// Secret is a pasted key or token, or env:NAME. Slack's may be both tokens.
	Secret string
	// Value is the budget, or the provider of workspaces.
	Value string
	// Invite asks for a new link or code, and Operator makes a person with access the operator.
	Invite   bool
	Operator string // the id of the person
	// Again asks what was found once more.
	Again bool
}
