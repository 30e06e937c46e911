package configs

import (
	"fmt"
	"path"
	"slices"
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
	Approve []string `key:"approve" local:"yes" class:"narrowing" kind:"approve" bad:"[*]" off:"all tools ask"`
	// Confirm is by pattern of tools, in the order of the file; the first one that
	// fits a tool counts.
	Confirm   []Confirming `key:"confirm" local:"yes" class:"narrowing" kind:"confirm"`
	Allow     []string     `key:"allow" local:"yes" class:"narrowing" kind:"allow"` // "tool" or "tool(pattern)"
	Approvals `key:"approvals" local:"yes" class:"narrowing" kind:"approvals"`
	Limits    CallLimits `key:"limits" class:"narrowing" off:"the profile has no tools"`
	DryRun    bool       `key:"dry_run" class:"narrowing" bad:"true" off:"nothing is done, as with true"`
}

// Approvals say who approves a call.
type Approvals struct {
	// Quorum is how many people approve, from 1, 0 where nothing was set; Approvers
	// who may, none: the agent's own person.
	Quorum    int      `key:"quorum" limits:"1..10" default:"1"`
	Approvers []string `key:"approvers" kind:"people"`
	// NoApproval: the settings are not valid, so that no call can be approved.
	NoApproval bool
}

// A Confirming is when the tools ask that a pattern fits.
type Confirming struct {
	Tools string
	When  string // always, never or unless_allowed
}

// CallLimits are what the tools of one run may take; 0 is the default.
type CallLimits struct {
	Time      time.Duration `key:"tool_time" limits:"1s..168h" default:"2h"`
	Output    int64         `key:"tool_output" kind:"bytes" default:"8MiB"`
	StepCalls int           `key:"step_calls" limits:"1..64" default:"64"`
	RunCalls  int           `key:"run_calls" limits:"1..10000" default:"200"`

	faults // why the profile has no tools
}

// The bounds of CallLimits.Output.
const (
	minToolOutput = 1 << 10
	maxToolOutput = 1 << 30
)

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
		r.warn(at, "want patterns of tools with always, never or unless_allowed, found %s; ignored", kindOf(n))
		instead(r, len(r.warnings)-1, "all tools ask")
		p.Care.Confirm = []Confirming{{"*", ConfirmAlways}}
		return
	}
	list := []Confirming{}
	before := len(r.warnings)
	for m := range r.members(at, n) {
		if _, err := glob(m.name); err != nil {
			r.refuse(m.at, err)
			continue
		}
		told := len(r.warnings)
		when := ConfirmAlways
		if v, ok := r.scalar(m.at, m.value); ok {
			if word, err := oneOf(v, ConfirmAlways, ConfirmNever, ConfirmUnlessAllowed); err != nil {
				r.refuse(m.at, err)
			} else {
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
		_, err := glob(tool)
		switch {
		case err != nil, bound && (!closed || pattern == ""), len(it.text) > 1000:
			r.warn(it.at, "%s is not a tool, nor a tool with a pattern such as shell(git status*); ignored", quote(it.text))
		default:
			p.Care.Allow = appendNew(p.Care.Allow, it.text)
			r.named("allow", item{it.at, tool})
		}
	}
}

// noApproval ends the warnings after which nothing can be approved.
const noApproval = "nothing can be approved"

// setApprovals reads who approves. With a mistake in it nothing can be approved: too few, or
// others, might be meant.
func setApprovals(r *reader, at place, n *yaml.Node, p *draft) {
	before := len(r.warnings)
	p.Care.NoApproval = false
	r.group(at, n, &p.Care.Approvals)
	switch d := countPeople(r, p.Care.Approvers); {
	case p.Care.Quorum > 1 && len(p.Care.Approvers) == 0:
		r.warn(at, "a quorum of %d is named but no approvers: set approvers, at least %d different people; ignored", p.Care.Quorum, p.Care.Quorum)
	case p.Care.Quorum > 1 && d < p.Care.Quorum:
		r.warn(at, "a quorum of %d needs as many different people among the approvers, there are %d; ignored", p.Care.Quorum, d)
	}
	p.Care.NoApproval = instead(r, before, noApproval)
}

// bytesOf reads a size such as 8MiB, or a number of bytes.
func bytesOf(v string) (int64, error) {
	number, unit := v, int64(1)
	for suffix, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if text, ok := strings.CutSuffix(v, suffix); ok {
			number, unit = strings.TrimSpace(text), n
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > maxToolOutput || n*unit < minToolOutput || n*unit > maxToolOutput {
		return 0, fmt.Errorf("%s is not a size from 1KiB to 1GiB, such as 8MiB", quote(v))
	}
	return n * unit, nil
}

// setApprove reads which tools ask before each call. A pattern that is not
// understood means all of them.
func setApprove(r *reader, at place, n *yaml.Node, p *draft) {
	before := len(r.warnings)
	list := readRules(r, "approve", at, n)
	if instead(r, before, "all tools ask") {
		list = []string{"*"}
	}
	p.Care.Approve = list
}

// readRules reads patterns of tools of a rule of a profile.
func readRules(r *reader, rule string, at place, n *yaml.Node) []string {
	items, ok := r.list(at, n)
	if !ok {
		return nil
	}
	list := valid(r, items, glob)
	for _, it := range items {
		if slices.Contains(list, it.text) {
			r.named(rule, it)
		}
	}
	return list
}
