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
	by    map[string]*family // by name, without the prefix
	order []*family          // of the page

	tools, models, connectors, codes *names
	open                             openRuns
}

// The families that are counted, in the order of the page. Those with bounds are histograms.
var counted = []struct {
	name, help string
	bounds     []float64
	labels     []string
}{
	{"feedback_total", "Feedback that people gave by reactions, by vote.", nil, []string{"connector", "vote"}},
	{"messages_received_total", "Messages that connectors posted, by outcome.", nil, []string{"connector", "outcome"}},
	{"message_receive_duration_seconds", "Time to accept one message, until it is durable.", quick, []string{"connector"}},
	{"messages_injected_total", "Messages that joined an active run.", nil, nil},
	{"sends_total", "Attempts to send a message, by outcome.", nil, []string{"connector", "outcome"}},
	{"send_duration_seconds", "Time that the platform took for one attempt to send.", calls, []string{"connector"}},
	{"runs_started_total", "Runs that started.", nil, nil},
	{"runs_paused_total", "Pauses of runs, by what they wait for.", nil, []string{"reason"}},
	{"runs_ended_total", "Runs that ended. The code is the error code of a failed run, and who canceled a canceled one.", nil, []string{"state", "code"}},
	{"run_duration_seconds", "Time from the start of a run to its end, pauses included; only runs that started in this process.", long, []string{"state"}},
	{"run_steps", "Model responses in one run.", []float64{1, 2, 3, 5, 8, 13, 21, 34, 55, 100, 200, 500, 1000}, nil},
	{"subagents_started_total", "Subagents that agents started.", nil, nil},
	{"model_call_duration_seconds", "Time that one model response took.", calls, []string{"model"}},
	{"model_calls_failed_total", "Tries of model calls that failed, by class of the error.", nil, []string{"model", "class"}},
	{"model_tokens_total", "Tokens of model calls. Input from a cache is cached_input and not counted as input.", nil, []string{"model", "kind"}},
	{"model_cost_usd_total", "Cost of model calls in US dollars, by the configured prices.", nil, []string{"model"}},
	{"compactions_total", "Conversations that were compacted during a run.", nil, nil},
	{"tool_calls_total", "Tool calls, by outcome.", nil, []string{"tool", "outcome"}},
	{"tool_duration_seconds", "Time that one tool call took.", calls, []string{"tool"}},
	{"panics_total", "Panics that were recovered.", nil, []string{"where"}},
}

func newLive(models func() []string) *live {
	l := &live{
		by:    make(map[string]*family),
		tools: &names{limit: maxTools}, models: &names{limit: maxModels, known: models},
		connectors: &names{limit: maxConnectors}, codes: &names{limit: maxCodes},
	}
	for _, c := range counted {
		f := &family{name: "claybot_" + c.name, kind: counter, help: c.help, bounds: c.bounds, labels: c.labels}
		if c.bounds != nil {
			f.kind = histogram
		}
		l.by[c.name], l.order = f, append(l.order, f)
	}
	for _, name := range []string{"runs_started_total", "messages_injected_total", "compactions_total", "subagents_started_total"} {
		l.by[name].add(0) // so that the first one is an increase
	}
	for _, where := range []string{"worker", "engine", "connector", "send", "live"} {
		l.by["panics_total"].add(0, where)
	}
	return l
}
