// Package explore is the engine that walks through an application by itself: it
// looks at a screen, does something it has not done yet, sees where that led, and
// draws a map of it all.
//
// It is a graph of nodes; what it knows is in the records of the run, so a walk
// goes on wherever it was cut off. The device does not survive that. It is opened
// anew by the node that needs it and brought back to the screen where the walk
// was: by its address, or by what is known to lead there. What may change something
// beyond the device (Action.Once) is never done for that, and is started at most
// once: found started and without a result, it counts as an error of the walk.
//
//	EnsureDevice → ProvisionApp → LaunchOrAttach → WaitIdle
//	Perceive → EnumerateActions → ChooseAction → Act → Verify → Persist → DetectProgress → ShouldContinue
//	ShouldContinue → Perceive | SwitchPolicy → Perceive | RestartApp → WaitIdle | Stop
//	Act → RecoverFromError → EnumerateActions; whatever crashes → RestartApp
//
// Only ChooseAction asks the model, and does without where there is none. What a
// screen says is data from strangers. Screens are kept as files, never in events.
//
// Only cmd imports it.
package explore

import (
	"context"
	"iter"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// The nodes of the graph.
const (
	nodeEnsure    = "EnsureDevice"
	nodeProvision = "ProvisionApp"
	nodeLaunch    = "LaunchOrAttach"
	nodeIdle      = "WaitIdle"
	nodePerceive  = "Perceive"
	nodeEnumerate = "EnumerateActions"
	nodeChoose    = "ChooseAction"
	nodeAct       = "Act"
	nodeVerify    = "Verify"
	nodePersist   = "Persist"
	nodeProgress  = "DetectProgress"
	nodeContinue  = "ShouldContinue"
	nodeSwitch    = "SwitchPolicy"
	nodeRestart   = "RestartApp"
	nodeRecover   = "RecoverFromError"
	nodeStop      = "Stop"
)

// The limits of a walk that sets none, and those of every walk.
const (
	DefaultMaxIterations = 60
	DefaultNoProgress    = 8
	maxIterations        = 1000
	maxScreens           = 200
	maxErrors            = 100
	maxCrashes           = 5 // in a row
)

// Config is what the engine is made of. Only Open is needed.
type Config struct {
	Open devices.Open
	// Model chooses what to do next; nil, or a nil result: a rule does.
	Model func(claybot.Agent) llm.Model
	// Settings are asked at each pass; nil: none, the message says everything.
	Settings func(*runs.Turn) Settings
	Log      *slog.Logger // nil discards
}

// Settings are what a profile says about walks.
type Settings struct {
	// URL is what is explored when the message names no address.
	URL string
	// Hosts may be reached, and nothing else; see devices.ParseHosts. None: the
	// host of URL.
	Hosts []string
	// Goal is the default for messages that state no goal. Only a model can tell
	// whether it is reached.
	Goal string
	// MaxIterations is how many actions are tried, at most 1000; below 1:
	// DefaultMaxIterations.
	MaxIterations int
	// NoProgress is how many actions in a row may lead to nothing new before the
	// policy changes, and the walk ends after the last one; below 1:
	// DefaultNoProgress.
	NoProgress int
	// BudgetMicroUSD is what the model may cost in one walk; 0: no limit.
	BudgetMicroUSD int64
	// Screens keeps a picture of each screen.
	Screens bool
	// Forbidden says why nothing may be explored; empty: something may.
	Forbidden string
}

// withDefaults are the settings with every limit set.
func (s Settings) withDefaults() Settings {
	if s.MaxIterations < 1 {
		s.MaxIterations = DefaultMaxIterations
	}
	s.MaxIterations = min(s.MaxIterations, maxIterations)
	if s.NoProgress < 1 {
		s.NoProgress = DefaultNoProgress
	}
	return s
}

// poor reports whether the budget is spent.
func (s Settings) poor(m *memory) bool {
	return s.BudgetMicroUSD > 0 && m.Progress.Spent >= s.BudgetMicroUSD
}

// An Engine explores. It is safe for concurrent use; each run has a device of its
// own.
type Engine struct{ cfg Config }

var (
	_ runs.Engine = (*Engine)(nil)
	_ runs.Shaped = (*Engine)(nil)
)

// New makes the engine.
func New(cfg Config) *Engine {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{cfg: cfg}
}

// Run implements runs.Engine. The device is closed when the pass ends, however
// that is.
func (e *Engine) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		w := e.walk(t)
		defer w.dev.close()
		for r, err := range w.graph().Run(ctx, t) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// Shape implements runs.Shaped.
func (e *Engine) Shape() runs.Shape { return e.walk(nil).graph().Shape() }
