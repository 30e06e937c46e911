package configs

import (
	"math"
	"regexp"
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
	Mode    string
	Intents []Intent // what people come for; none: anything
	Tools   []string // that may be used; none: all
	Deny    []string // that may not, whatever else is said
	Scopes  []string // of tools that may be used; none: all
	Quiet   *Quiet   // nil: never
	// BudgetMicroUSD is what the steps of one run may cost by their estimates;
	// 0: no limit.
	BudgetMicroUSD int64
	Approvals      int      // how many people approve a step, from 1
	Approvers      []string // "connector/userId"; none: the agent's own person
	// ContinueOnError: steps that do not need a failed one are run all the same.
	ContinueOnError bool
	Retries         *int              // of a step, 0 to 10; nil: as the engine does
	Rates           map[string]string // by tool: "5/s", "30/m", "100/h"
}

// Quiet are hours of the day in the zone of the person. They pass midnight when
// To is not after From.
type Quiet struct {
	From, To time.Duration // since midnight, whole minutes
	What     string        // plan_only, defer or block
}

// A planDraft is a Plan while it is read.
type planDraft struct {
	Plan
	what string // quiet, when it was set
	// held: a setting that keeps steps back was not understood, so that nothing
	// must run.
	held bool
}

// setPlan reads a group. What it changes is a copy, as profiles share the
// settings of the default one.
func setPlan(r *reader, at place, n *yaml.Node, p *draft) {
	d := planDraft{Plan: Plan{Mode: PlanApprove, Approvals: 1}}
	if p.Engine.Plan != nil {
		d.Plan = *p.Engine.Plan
	}
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(planKeys()), ", "), kind(n))
		instead(r, len(r.warnings)-1, usingPreview)
		d.held = true
	} else {
		before := len(r.warnings)
		group(r, at, n, &d, planKeys())
		r.holdUnknown(at, before, &d)
	}
	switch {
	case d.what == "":
	case d.Quiet == nil:
		r.warn(at.sub("quiet", n.Line), "says what happens in quiet_hours, which are missing; ignored")
	default:
		d.Quiet = &Quiet{d.Quiet.From, d.Quiet.To, d.what}
	}
	if n := r.distinct(d.Approvers); d.Approvals > 1 && n < d.Approvals {
		r.warn(at, "%d approvals need as many different people among the approvers, there are %d; ignored", d.Approvals, n)
		instead(r, len(r.warnings)-1, usingPreview)
		d.held = true
	}
	if d.held {
		d.Mode = PlanPreview
	}
	p.Engine.Plan = &d.Plan
}

// distinct is how many people have these ids.
func (r *reader) distinct(ids []string) int {
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

// hold marks the warnings since before as ones after which nothing must run.
func (r *reader) hold(before int, p *planDraft) {
	p.held = instead(r, before, usingPreview) || p.held
}

// holdUnknown does so for keys that were not read: a mistyped deny denies
// nothing.
func (r *reader) holdUnknown(at place, before int, p *planDraft) {
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		if text, ok := unread(*w, at); ok {
			w.Text, w.Off = text+"; "+usingPreview, true
			p.held = true
		}
	}
}

// holding makes a key whose mistakes leave nothing to run.
func holding(name string, set func(r *reader, at place, n *yaml.Node, p *planDraft)) key[planDraft] {
	return key[planDraft]{name, func(r *reader, at place, n *yaml.Node, p *planDraft) {
		before := len(r.warnings)
		set(r, at, n, p)
		r.hold(before, p)
	}}
}

func planKeys() []key[planDraft] {
	return []key[planDraft]{
		holding("mode", scalarOf(func(r *reader, at place, v string, p *planDraft) {
			word, ok := r.word(at, v, PlanPreview, PlanApprove, PlanAuto)
			store(&p.Mode, word, ok)
		})),
		{"intents", func(r *reader, at place, n *yaml.Node, p *planDraft) {
			before := len(r.warnings)
			if !setIntents(r, at, n, p) { // none would mean anything
				r.hold(before, p)
			}
		}},
		holding("tools", func(r *reader, at place, n *yaml.Node, p *planDraft) { p.Tools = r.globs(at, n) }),
		holding("deny", func(r *reader, at place, n *yaml.Node, p *planDraft) {
			p.Deny = r.eachGlob(at, n, func(it item) { r.named("deny", it) })
		}),
		holding("scopes", func(r *reader, at place, n *yaml.Node, p *planDraft) { p.Scopes = r.scopes(at, n) }),
		holding("quiet_hours", scalarOf(func(r *reader, at place, v string, p *planDraft) {
			quiet, ok := r.quietHours(at, v)
			if ok && quiet != nil && p.Quiet != nil {
				quiet.What = p.Quiet.What
			}
			store(&p.Quiet, quiet, ok)
		})),
		holding("quiet", scalarOf(func(r *reader, at place, v string, p *planDraft) {
			word, ok := r.word(at, v, QuietPlanOnly, QuietDefer, QuietBlock)
			store(&p.what, word, ok)
		})),
		holding("budget", scalarOf(func(r *reader, at place, v string, p *planDraft) {
			usd, ok := decimal(v)
			if !ok || usd > 1e6 {
				r.warn(at, "%s is not an amount of US dollars such as 0.50; ignored", quote(v))
				return
			}
			p.BudgetMicroUSD = int64(math.Round(usd * 1e6))
			if usd > 0 && p.BudgetMicroUSD == 0 {
				p.BudgetMicroUSD = 1 // 0 would be no limit
			}
		})),
		holding("approvals", scalarOf(func(r *reader, at place, v string, p *planDraft) {
			n, ok := r.number(at, v, 1, 10)
			store(&p.Approvals, n, ok)
		})),
		holding("approvers", setApprovers),
		text("continue_on_error", func(r *reader, at place, v string, p *planDraft) { r.truth(at, v, &p.ContinueOnError) }),
		text("retries", func(r *reader, at place, v string, p *planDraft) {
			n, ok := r.number(at, v, 0, 10)
			store(&p.Retries, &n, ok)
		}),
		holding("rates", setRates),
	}
}

// scalarOf reads a single value.
func scalarOf(set func(r *reader, at place, v string, p *planDraft)) func(*reader, place, *yaml.Node, *planDraft) {
	return text("", set).set
}

// quietHours reads "22:00-07:00"; off ends those of the default profile.
func (r *reader) quietHours(at place, v string) (*Quiet, bool) {
	if v == Off || v == "false" {
		return nil, true
	}
	text, err := activeHours(v)
	if err != nil {
		r.warn(at, "%v; ignored", err)
		return nil, false
	}
	if text == "" { // the whole day
		return &Quiet{0, 24 * time.Hour, QuietPlanOnly}, true
	}
	from, to, _ := strings.Cut(text, "-")
	return &Quiet{sinceMidnight(from), sinceMidnight(to), QuietPlanOnly}, true
}

// sinceMidnight reads a time that activeHours made.
func sinceMidnight(clock string) time.Duration {
	hours, _ := strconv.Atoi(clock[:2])
	minutes, _ := strconv.Atoi(clock[3:])
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
}

func setApprovers(r *reader, at place, n *yaml.Node, p *planDraft) {
	items, ok := r.list(at, n)
	if !ok {
		return
	}
	p.Approvers = []string{}
	for _, it := range items {
		id, connector, err := parseOwner(it.text)
		if err != nil {
			r.refuse(it, connector, connectorNames(), err)
			continue
		}
		p.Approvers = appendNew(p.Approvers, id)
	}
}

var rateForm = regexp.MustCompile(`^([1-9][0-9]{0,2}|1000)/[smh]$`)

func setRates(r *reader, at place, n *yaml.Node, p *planDraft) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of tools with their rates, found %s; ignored", kind(n))
		return
	}
	rates := make(map[string]string)
	for m := range r.members(at, n) {
		v, ok := r.scalar(m.at, m.value)
		switch {
		case !ok:
		case !toolName(m.name):
			r.warn(m.at, "%s is not the name of a tool; ignored", quote(m.name))
		case !rateForm.MatchString(v):
			r.warn(m.at, "%s is not a rate such as 5/s, 30/m or 100/h, up to 1000; ignored", quote(v))
		default:
			rates[m.name] = v
		}
	}
	p.Rates = rates
}

func toolName(v string) bool { return len(v) <= 64 && headerName(v) }

// glob is a pattern of names of tools.
var glob = regexp.MustCompile(`^[A-Za-z0-9_*?-]+$`) // and at most 64 bytes

// globs reads patterns of tools and leaves out bad ones.
func (r *reader) globs(at place, n *yaml.Node) []string {
	return r.eachGlob(at, n, func(item) {})
}

// eachGlob is globs that calls each with those that it takes.
func (r *reader) eachGlob(at place, n *yaml.Node, each func(item)) []string {
	items, ok := r.list(at, n)
	if !ok {
		return nil
	}
	list := []string{}
	for _, it := range items {
		if len(it.text) > 64 || !glob.MatchString(it.text) {
			r.warn(it.at, "%s is not the name of a tool, nor a pattern such as mail_*; ignored", quote(it.text))
			continue
		}
		list = appendNew(list, it.text)
		each(it)
	}
	return list
}

var scopeForm = regexp.MustCompile(`^[A-Za-z0-9_.:/-]+$`) // and at most 64 bytes

func (r *reader) scopes(at place, n *yaml.Node) []string {
	items, ok := r.list(at, n)
	if !ok {
		return nil
	}
	list := []string{}
	for _, it := range items {
		if len(it.text) > 64 || !scopeForm.MatchString(it.text) {
			r.warn(it.at, "%s is not a scope such as schedule; ignored", quote(it.text))
			continue
		}
		list = appendNew(list, it.text)
	}
	return list
}

func appendNew(list []string, v string) []string {
	for _, known := range list {
		if known == v {
			return list
		}
	}
	return append(list, v)
}

// setApprove reads which tools ask before each call. A pattern that is not
// understood means all of them.
func setApprove(r *reader, at place, n *yaml.Node, p *draft) {
	before := len(r.warnings)
	list := r.eachGlob(at, n, func(it item) { r.named("approve", it) })
	if instead(r, before, "all tools ask") {
		list = []string{"*"}
	}
	p.Care.Approve = list
}
