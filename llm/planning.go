package llm

// The ids of the requests of an engine that plans: a model that is scripted
// knows by them what is asked of it.
const (
	ClassifyRequest    = "plan_classify" // which intent it is, and what was said
	PlanRequest        = "plan_steps"    // the steps
	PlanSummaryRequest = "plan_summary"  // what to tell the person
)
