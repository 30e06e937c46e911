package metrics

// Bounds of histograms, in seconds.
var (
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	calls = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
	long  = []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}
)

// The most names that get labels of their own, besides those that are
// configured.
const (
	maxTools      = 150
	maxModels     = 30
	maxConnectors = 50
	maxCodes      = 50
)

// A live counts what happens.
type live struct {
	received, receiveTook         *family
	sends, sendTook               *family
	modelTook, modelTokens, spent *family
	toolCalls, toolTook           *family
	runsStarted, runsPaused       *family
	runsEnded, runTook, runSteps  *family
	injected, compactions         *family
	subagents, panics             *family

	tools, models, connectors, codes *names
	open                             openRuns
}

func newLive(models func() []string) *live {
	count := func(name, help string, labels ...string) *family {
		return &family{name: name, kind: counter, help: help, labels: labels}
	}
	spread := func(name, help string, bounds []float64, labels ...string) *family {
		return &family{name: name, kind: histogram, help: help, bounds: bounds, labels: labels}
	}
	l := &live{
		received:    count("claybot_messages_received_total", "Messages that connectors posted, by what became of them.", "connector", "outcome"),
		receiveTook: spread("claybot_message_receive_duration_seconds", "Time to take in one message, until it is durable.", quick, "connector"),
		sends:       count("claybot_sends_total", "Attempts to send a message, by how they ended.", "connector", "outcome"),
		sendTook:    spread("claybot_send_duration_seconds", "Time that the platform took over one attempt to send.", calls, "connector"),
		modelTook:   spread("claybot_model_call_duration_seconds", "Time that one answer of a model took.", calls, "model"),
		modelTokens: count("claybot_model_tokens_total", "Tokens that models took. Input that came from a cache is cached_input and not counted as input.", "model", "kind"),
		spent:       count("claybot_model_cost_usd_total", "Cost of model calls in US dollars, by the configured prices.", "model"),
		toolCalls:   count("claybot_tool_calls_total", "Calls of tools, by how they ended.", "tool", "outcome"),
		toolTook:    spread("claybot_tool_duration_seconds", "Time that one call of a tool took.", calls, "tool"),
		runsStarted: count("claybot_runs_started_total", "Runs that began."),
		runsPaused:  count("claybot_runs_paused_total", "Pauses of runs, by what they wait for.", "reason"),
		runsEnded:   count("claybot_runs_ended_total", "Runs that ended. The code is that of the error of a failed run, and who ended a canceled one.", "state", "code"),
		runTook:     spread("claybot_run_duration_seconds", "Time from the beginning of a run to its end, pauses included; of runs that began in this process.", long, "state"),
		runSteps:    spread("claybot_run_steps", "Answers of the model in one run.", []float64{1, 2, 3, 5, 8, 13, 21, 34, 55, 100, 200, 500, 1000}),
		injected:    count("claybot_messages_injected_total", "Messages that joined a run under way."),
		compactions: count("claybot_compactions_total", "Conversations that were shortened during a run."),
		subagents:   count("claybot_subagents_started_total", "Agents that other agents started."),
		panics:      count("claybot_panics_total", "Panics that were caught.", "where"),

		tools: &names{limit: maxTools}, models: &names{limit: maxModels, known: models},
		connectors: &names{limit: maxConnectors}, codes: &names{limit: maxCodes},
	}
	for _, f := range []*family{l.runsStarted, l.injected, l.compactions, l.subagents} {
		f.add(0) // so that the first one is an increase
	}
	for _, where := range []string{"worker", "engine", "connector", "send", "live"} {
		l.panics.add(0, where)
	}
	return l
}

// families are all of them, in the order of the page.
func (l *live) families() []*family {
	return []*family{
		l.received, l.receiveTook, l.injected, l.sends, l.sendTook,
		l.runsStarted, l.runsPaused, l.runsEnded, l.runTook, l.runSteps, l.subagents,
		l.modelTook, l.modelTokens, l.spent, l.compactions, l.toolCalls, l.toolTook, l.panics,
	}
}
