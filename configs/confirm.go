package configs

import (
	"path"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The values of Confirming.When.
const (
	ConfirmAlways        = "always"
	ConfirmNever         = "never"
	ConfirmUnlessAllowed = "unless_allowed"
)

// A Care is what a profile says about calls of tools before they are made.
type Care struct {
	// Approve are patterns of the tools that ask before each call.
	Approve []string
	// Confirm is by pattern of tools, in the order of the file; the first one that
	// fits a tool counts.
	Confirm []Confirming
	Allow   []string // "tool" or "tool(pattern)"
	// Quorum is how many people approve a call, from 1, 0 where nothing was said;
	// Approvers who may, none: the agent's own person. NoApproval: what was said
	// about them is not understood, so nobody may approve anything.
	Quorum     int
	Approvers  []string
	NoApproval bool
	Limits     CallLimits
	DryRun     bool
}

// A Confirming is when the tools ask that a pattern fits.
type Confirming struct {
	Tools string
	When  string // always, never or unless_allowed
}

// CallLimits are what the tools of one run may take; 0 is the default.
type CallLimits struct {
	Time      time.Duration
	Output    int64 // bytes
	StepCalls int
	RunCalls  int
	faults    reasons
}

// The bounds of CallLimits.
const (
	maxToolTime   = 7 * 24 * time.Hour
	minToolOutput = 1 << 10
	maxToolOutput = 1 << 30
	maxStepCalls  = 64
	maxRunCalls   = 10_000
	maxQuorum     = 10
)

func careKeys() []key[draft] {
	return []key[draft]{
		{"confirm", setConfirm},
		{"allow", setAllow},
		{"approvals", setApprovals},
		{"limits", func(r *reader, at place, n *yaml.Node, p *draft) { group(r, at, n, &p.Care.Limits, limitKeys()) }},
		text("dry_run", func(r *reader, at place, v string, p *draft) {
			before := len(r.warnings)
			r.truth(at, v, &p.Care.DryRun)
			if instead(r, before, "nothing is done, as with true") {
				p.Care.DryRun = true
			}
		}),
	}
}

// instead says in the warnings since before what holds in place of what was not
// understood. It reports whether there are any.
func instead(r *reader, before int, what string) bool {
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		w.Text, w.Off = strings.TrimSuffix(w.Text, "; ignored")+"; "+what, true
	}
	return len(r.warnings) > before
}

// setConfirm reads when tools ask. What is not understood asks too often rather
// than never.
func setConfirm(r *reader, at place, n *yaml.Node, p *draft) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want patterns of tools with always, never or unless_allowed, found %s; ignored", kind(n))
		instead(r, len(r.warnings)-1, "all tools ask")
		p.Care.Confirm = []Confirming{{"*", ConfirmAlways}}
		return
	}
	list := []Confirming{}
	before := len(r.warnings)
	for m := range r.members(at, n) {
		if len(m.name) > 64 || !glob.MatchString(m.name) {
			r.warn(m.at, "%s is not the name of a tool, nor a pattern such as mail_*; ignored", quote(m.name))
			continue
		}
		told := len(r.warnings)
		when := ConfirmAlways
		if v, ok := r.scalar(m.at, m.value); ok {
			if word, ok := r.word(m.at, v, ConfirmAlways, ConfirmNever, ConfirmUnlessAllowed); ok {
				when = word
			}
		}
		if instead(r, told, "using "+ConfirmAlways) {
			before += len(r.warnings) - told
		}
		if fits, _ := path.Match(m.name, "shell"); fits && when == ConfirmNever {
			r.warn(m.at, "no command of the tool shell is approved by anybody")
			before++
		}
		list = append(list, Confirming{m.name, when})
		r.named("confirm", item{m.at, m.name})
	}
	if len(r.warnings) > before { // a key was not read: it might have been about any tool
		list = []Confirming{{"*", ConfirmAlways}}
		for i := range r.warnings {
			if w := &r.warnings[i]; strings.HasPrefix(w.Key, at.key) {
				if text, ok := ignored(*w); ok {
					w.Text, w.Off = text+"; all tools ask", true
				}
			}
		}
	}
	p.Care.Confirm = list
}

// setAllow reads what needs no approval, and leaves out what is not understood.
func setAllow(r *reader, at place, n *yaml.Node, p *draft) {
	items, _ := r.list(at, n)
	p.Care.Allow = []string{}
	for _, it := range items {
		tool, rest, bound := strings.Cut(it.text, "(")
		pattern, closed := strings.CutSuffix(rest, ")")
		switch {
		case len(tool) > 64 || !glob.MatchString(tool), bound && (!closed || pattern == ""), len(it.text) > 1000:
			r.warn(it.at, "%s is not a tool, nor a tool with a pattern such as shell(git status*); ignored", quote(it.text))
		default:
			p.Care.Allow = appendNew(p.Care.Allow, it.text)
			r.named("allow", item{it.at, tool})
		}
	}
}

// noApproval ends the warnings after which nothing can be approved.
const noApproval = "nobody may approve anything"

// setApprovals reads who approves. With a mistake in it nobody does: too few, or
// others, might be meant.
func setApprovals(r *reader, at place, n *yaml.Node, p *draft) {
	before := len(r.warnings)
	p.Care.NoApproval = false
	group(r, at, n, &p.Care, approvalKeys())
	switch d := r.distinct(p.Care.Approvers); {
	case p.Care.Quorum > 1 && len(p.Care.Approvers) == 0:
		r.warn(at, "a quorum of %d is named but nobody who may approve: set approvers, at least %d different people; ignored", p.Care.Quorum, p.Care.Quorum)
	case p.Care.Quorum > 1 && d < p.Care.Quorum:
		r.warn(at, "a quorum of %d needs as many different people among the approvers, there are %d; ignored", p.Care.Quorum, d)
	}
	p.Care.NoApproval = instead(r, before, noApproval)
}

func approvalKeys() []key[Care] {
	return []key[Care]{
		text("quorum", func(r *reader, at place, v string, c *Care) {
			n, ok := r.number(at, v, 1, maxQuorum)
			store(&c.Quorum, n, ok)
		}),
		{"approvers", func(r *reader, at place, n *yaml.Node, c *Care) {
			d := planDraft{}
			setApprovers(r, at, n, &d)
			store(&c.Approvers, d.Approvers, d.Approvers != nil)
		}},
	}
}

func limitKeys() []key[CallLimits] {
	return []key[CallLimits]{
		text("tool_time", func(r *reader, at place, v string, l *CallLimits) {
			d, err := time.ParseDuration(v)
			if err != nil || d < time.Second || d > maxToolTime {
				r.warn(at, "%s is not a time from 1s to %s, such as 2h or 90m; ignored", quote(v), "168h")
				return
			}
			l.Time = d
		}),
		text("tool_output", func(r *reader, at place, v string, l *CallLimits) {
			n, ok := bytesOf(v)
			if !ok || n < minToolOutput || n > maxToolOutput {
				r.warn(at, "%s is not a size from 1KiB to 1GiB, such as 8MiB; ignored", quote(v))
				return
			}
			l.Output = n
		}),
		text("step_calls", func(r *reader, at place, v string, l *CallLimits) {
			n, ok := r.number(at, v, 1, maxStepCalls)
			store(&l.StepCalls, n, ok)
		}),
		text("run_calls", func(r *reader, at place, v string, l *CallLimits) {
			n, ok := r.number(at, v, 1, maxRunCalls)
			store(&l.RunCalls, n, ok)
		}),
	}
}

// bytesOf reads a size such as 8MiB, or a number of bytes.
func bytesOf(v string) (int64, bool) {
	unit := int64(1)
	for suffix, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if number, ok := strings.CutSuffix(v, suffix); ok {
			v, unit = strings.TrimSpace(number), n
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > maxToolOutput {
		return 0, false
	}
	return n * unit, true
}
