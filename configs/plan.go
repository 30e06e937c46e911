package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The values of Plan.Mode.
const (
	PlanPreview = "preview" // shows the plan, runs nothing
	PlanApprove = "approve" // asks before each step of high risk
	PlanAuto    = "auto"    // asks only where a tool or approve says so
)

// The values of Quiet.What.
const (
	QuietPlanOnly = "plan_only" // as PlanPreview
	QuietDefer    = "defer"     // waits for the end of the quiet hours
	QuietBlock    = "block"     // refuses
)

// A Plan says what the plan engine may do. Lists of tools hold patterns, in
// which * stands for any characters and ? for one.
type Plan struct {
	Mode    string   `key:"mode" words:"preview,approve,auto"`
	Intents []Intent `key:"intents" kind:"intents"`              // what people come for; none: anything
	Tools   []string `key:"tools" kind:"tool patterns"`          // that may be used; none: all
	Deny    []string `key:"deny" kind:"denied tools"`            // that may not, whatever else is set
	Scopes  []string `key:"scopes" kind:"scopes"`                // of tools that may be used; none: all
	Quiet   *Quiet   `key:"quiet_hours,leaf" kind:"quiet hours"` // nil: never
	_       struct{} `key:"quiet" kind:"quiet"`
	// BudgetMicroUSD is what the steps of one run may cost by their estimates;
	// 0: no limit.
	BudgetMicroUSD int64    `key:"budget" kind:"micro-USD" limits:"0..1000000"`
	Approvals      int      `key:"approvals" local:"yes" limits:"1..10"` // how many people approve a step
	Approvers      []string `key:"approvers" local:"yes" kind:"people"`  // "connector/userId"; none: the agent's own person
	// ContinueOnError: steps that do not need a failed one are run all the same.
	ContinueOnError bool              `key:"continue_on_error" class:"harmless"`
	Retries         *int              `key:"retries" class:"harmless" limits:"0..10" default:"3"` // of a step; nil: as the engine does
	Rates           map[string]string `key:"rates" kind:"rates"`                                  // by tool: "5/s", "30/m", "100/h"
}

// Quiet are hours of the day in the zone of the person. They pass midnight when
// To is not after From.
type Quiet struct {
	From, To time.Duration // since midnight, whole minutes
	What     string        // plan_only, defer or block
}

// String is the hours as the file says them; off for none.
func (q *Quiet) String() string {
	if q == nil {
		return Off
	}
	clock := func(t time.Duration) string { return fmt.Sprintf("%02d:%02d", int(t.Hours()), int(t.Minutes())%60) }
	return clock(q.From) + "-" + clock(q.To)
}

// plainPlan is the Plan in which nothing was set.
func plainPlan() Plan { return Plan{Mode: PlanApprove, Approvals: 1} }

// A planDraft is a Plan while it is read.
type planDraft struct {
	Plan
	what string // quiet, when it was set
	// held: a setting that keeps steps back is not valid, so that nothing may run.
	held bool
}

func isPlanKey(name string) bool {
	return slices.Contains(names(keysOf(reflect.TypeFor[Plan]())), name)
}

// setPlan reads a group. What it changes is a copy, as profiles share the
// settings of the default one.
func setPlan(r *reader, at place, n *yaml.Node, p *draft) {
	d := planDraft{Plan: plainPlan()}
	if p.Engine.Plan != nil {
		d.Plan = *p.Engine.Plan
	}
	before := len(r.warnings)
	r.group(at, n, &d)
	holdPlan(r, at, before, &d)
	switch {
	case d.what == "":
	case d.Quiet == nil:
		r.warn(at.sub("quiet", n.Line), "says what happens in quiet_hours, which are missing; ignored")
	default:
		d.Quiet = &Quiet{d.Quiet.From, d.Quiet.To, d.what}
	}
	if n := countPeople(r, d.Approvers); d.Approvals > 1 && n < d.Approvals {
		r.warn(at, "%d approvals need as many different people among the approvers, there are %d; ignored", d.Approvals, n)
		d.held = instead(r, len(r.warnings)-1, usingPreview)
	}
	if d.held {
		d.Mode = PlanPreview
	}
	p.Engine.Plan = &d.Plan
}

// holdPlan finds whether a setting that keeps steps back is among the warnings since before:
// all but those of harmless keys, and of some of several intents. A key that is not read
// counts, too: a mistyped deny denies nothing.
func holdPlan(r *reader, at place, before int, d *planDraft) {
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		name, _, _ := strings.Cut(strings.TrimPrefix(w.Key, at.key+"."), ".")
		name, _, _ = strings.Cut(name, "[")
		if _, skipped := unread(*w, at); !skipped && (classOf(profilePath+".plan."+name) == Harmless || name == "intents" && len(d.Intents) > 0) {
			continue
		}
		w.Text, w.Off, d.held = strings.TrimSuffix(w.Text, "; ignored")+"; "+usingPreview, true, true
	}
}

// countPeople is how many people have these ids.
func countPeople(r *reader, ids []string) int {
	people := make(map[string]bool)
	if r.mixed && len(ids) > 1 {
		return 1 // as far as anyone can tell
	}
	for _, id := range ids {
		people[r.person(id)] = true
	}
	return len(people)
}

const usingPreview = "using mode: " + PlanPreview

// setQuietHours reads "22:00-07:00"; off ends those of the default profile.
func setQuietHours(r *reader, at place, v string, p *planDraft) {
	if v == Off || v == "false" {
		p.Quiet = nil
		return
	}
	text, err := activeHours(v)
	if err != nil {
		r.refuse(at, err)
		return
	}
	quiet := Quiet{0, 24 * time.Hour, QuietPlanOnly} // the whole day
	if from, to, ok := strings.Cut(text, "-"); ok {
		quiet.From, quiet.To = sinceMidnight(from), sinceMidnight(to)
	}
	if p.Quiet != nil {
		quiet.What = p.Quiet.What
	}
	p.Quiet = &quiet
}

func setQuiet(r *reader, at place, v string, p *planDraft) {
	word, err := oneOf(v, QuietPlanOnly, QuietDefer, QuietBlock)
	if err != nil {
		r.refuse(at, err)
		return
	}
	p.what = word
}

// sinceMidnight reads a time that activeHours made.
func sinceMidnight(clock string) time.Duration {
	hours, _ := strconv.Atoi(clock[:2])
	minutes, _ := strconv.Atoi(clock[3:])
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
}

// textsByName reads single values by names that have a form.
func textsByName(r *reader, at place, n *yaml.Node, what string, names form, parse func(string) (string, error)) map[string]string {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of %s, found %s; ignored", what, kindOf(n))
		return nil
	}
	all := make(map[string]string)
	for m := range r.members(at, n) {
		v, ok := r.scalar(m.at, m.value)
		if !ok {
			continue
		}
		_, err := names.parse(m.name)
		if err == nil {
			v, err = parse(v)
		}
		if err != nil {
			r.refuse(m.at, err)
		} else {
			all[m.name] = v
		}
	}
	return all
}

func setRates(r *reader, at place, n *yaml.Node, rates *map[string]string) {
	if all := textsByName(r, at, n, "tools with their rates", forms["tool"], forms["rate"].parse); all != nil {
		*rates = all
	}
}

func setIntents(r *reader, at place, n *yaml.Node, intents *[]Intent) {
	if list, ok := entries(r, at, n, "intent", (*Intent).fault, func(in Intent) string { return in.Name }); ok {
		*intents = list
	}
}

func appendNew(list []string, v string) []string {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
