package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/claybot/claybot"
)

// A Confirm says when calls of a tool ask a person.
type Confirm string

// When calls ask.
const (
	ConfirmAlways        Confirm = "always" // unless a person has approved them for longer
	ConfirmNever         Confirm = "never"
	ConfirmUnlessAllowed Confirm = "unless_allowed" // as always, but not what Rules.Allow has
)

// A Confirming is when the tools ask that a glob fits.
type Confirming struct {
	Tools string
	When  Confirm
}

// Rules say which calls a person approves before they are made. They come from
// the operator and from what people approved for good; they never overrule a
// Refuse of Judge, and nothing but a person, each time, lets an Authority tool
// through.
//
// What is said about a tool first counts: in Ask, else in Confirm. About a tool
// of which nothing is said, its Spec.Confirm and Judge decide, and Allow lets
// through what they would ask about.
type Rules struct {
	// Ask are globs of tools that always ask.
	Ask []string
	// Confirm is gone through in its order; the first glob that fits a tool
	// counts.
	Confirm []Confirming
	// Allow are rules "tool" or "tool(pattern)" with a glob and a pattern of the
	// Subject of the call, see Permits.
	Allow []string
	// Always is what people approved for good: the glob of a tool, or
	// "tool(subject)" for exactly that subject.
	Always []string
	// Quorum is how many different people approve a call, below 1: one; and
	// Approvers who may, as "connector/userId", none: the agent's own person. With
	// either nothing is approved for longer than once.
	Quorum    int
	Approvers []string
}

// A Decision is what happens with a call, and why, in words for who approves or,
// with Refuse, for the model. With Owners, these people approve it, all of them, one after
// another.
type Decision struct {
	Verdict
	Why    string
	Owners []string
}

// Once reports whether the approval of a tool is for one action alone.
func (r Rules) Once(spec Spec) bool {
	return r.Quorum > 1 || len(r.Approvers) > 0 || spec.Class == Authority
}

// Decide says what happens with a call whose arguments fit. The history is what
// the run remembers, and env is of it, see Env.Aware.
func (r Rules) Decide(ctx context.Context, env Env, spec Spec, call claybot.ToolCall, history []claybot.Record) Decision {
	args := call.Input()
	spec = reaching(env, spec.In(env), args)
	if d := disclosed(ctx, env, spec, args); d != nil {
		return r.disclose(env, *d, spec, call, history)
	}
	verdict := Judge(Situation{Tainted: env.Tainted}, spec, listed(env, spec, args))
	when, why := r.confirm(env.Say, spec.Name)
	switch {
	case verdict == Refuse:
		return Decision{Verdict: Refuse, Why: whyRefused(env, spec)}
	case spec.Class == Authority && env.Agent.Descriptor.Shared() && len(r.Approvers) == 0:
		return Decision{Verdict: Refuse, Why: "it changes rights or settings for all members of this group, which no member decides alone; an operator can change them, or configure approvers"}
	case spec.Class == Authority:
		return Decision{Verdict: Ask, Why: env.Say.say("it changes rights or settings")}
	case when == ConfirmNever:
		return Decision{Verdict: Allow}
	case when == ConfirmAlways:
	case r.allows(spec, args):
		return Decision{Verdict: Allow}
	case when == ConfirmUnlessAllowed:
	case spec.Confirm:
		why = env.Say.say("this tool asks before each call")
	case verdict == Ask:
		why = whyAsked(env, spec) + batch(history, spec, args).also(env.Say)
	default:
		return Decision{Verdict: Allow}
	}
	if !r.Once(spec) && (r.always(spec, args) || granted(history, spec, call, env.Tainted)) {
		return Decision{Verdict: Allow}
	}
	return Decision{Verdict: Ask, Why: why}
}

// disclose decides about a call that discloses something. Its owner alone can approve
// that: no rule of the operator lets it through, and where rules name other approvers, who
// cannot speak for the owner, it is refused. Of a program, these approvers decide.
func (r Rules) disclose(env Env, d Disclosure, spec Spec, call claybot.ToolCall, history []claybot.Record) Decision {
	switch {
	case d.Program && len(r.Approvers) > 0:
		return Decision{Verdict: Ask, Why: d.Text}
	case len(d.Owners) == 0 || slices.Contains(d.Owners, "") || r.Quorum > 1 || len(r.Approvers) > 0:
		return Decision{Verdict: Refuse, Why: d.Text + ", and the person whose that is cannot be asked about this tool"}
	case granted(history, spec, call, env.Tainted):
		return Decision{Verdict: Allow}
	}
	if rule, ok := Rule(spec, call); ok && slices.Contains(r.Always, rule) { // about this subject, not all of the tool
		return Decision{Verdict: Allow}
	}
	return Decision{Verdict: Ask, Why: d.Text, Owners: d.Owners}
}

// disclosed asks the hook of a tool. After a panic nothing is known, and nobody may
// approve it.
func disclosed(ctx context.Context, env Env, spec Spec, args json.RawMessage) (d *Disclosure) {
	if spec.Discloses == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			d = &Disclosure{Text: "it is unknown who will be able to read what"}
		}
	}()
	return spec.Discloses(ctx, env, args)
}

// Allowed reports whether the operator or a person lets a call through that
// something else would ask about, such as the risk of a step in a plan.
func (r Rules) Allowed(spec Spec, args json.RawMessage) bool {
	when, _ := r.confirm(nil, spec.Name)
	switch {
	case spec.Class == Authority, when == ConfirmAlways:
		return false
	case when == ConfirmNever, r.allows(spec, args):
		return true
	}
	return !r.Once(spec) && r.always(spec, args)
}

func (r Rules) confirm(to Say, tool string) (Confirm, string) {
	for _, glob := range r.Ask {
		if fits, err := path.Match(glob, tool); fits || err != nil { // a rule that cannot be read asks too often rather than never
			return ConfirmAlways, to.say("a rule requires an approval for this action")
		}
	}
	for _, c := range r.Confirm {
		fits, err := path.Match(c.Tools, tool)
		switch {
		case err == nil && !fits:
		case err == nil && c.When == ConfirmNever:
			return ConfirmNever, ""
		case err == nil && c.When == ConfirmUnlessAllowed:
			return ConfirmUnlessAllowed, to.say("no rule allows this action")
		default:
			return ConfirmAlways, to.say("a rule requires an approval for this action")
		}
	}
	return "", ""
}

func whyRefused(env Env, spec Spec) string {
	switch {
	case spec.Class == Host:
		return "the tool reaches the machine itself, which no agent may"
	case env.Tainted:
		return "this conversation holds untrusted content, so nothing that changes rights or settings runs in it; the user can start a new conversation with /new"
	}
	return "the tool may not be used here"
}

func whyAsked(env Env, spec Spec) string {
	switch {
	case spec.Class == Schedule:
		return env.Say.say("it acts later or through other agents, and this conversation holds untrusted content")
	case env.Tainted:
		return env.Say.say("it reaches a destination that is on no list, and this conversation holds untrusted content")
	case env.Private:
		return env.Say.say("it reaches a destination that is on no list, and this conversation holds what not everybody may read")
	}
	return env.Say.say("it reaches a destination that is on no list")
}

// reaching is a spec with the class of one call. Of a hook that panics nothing is
// known, and nothing is allowed.
func reaching(env Env, spec Spec, args json.RawMessage) (of Spec) {
	if of = spec; spec.Reaches == nil {
		return of
	}
	defer func() {
		if recover() != nil {
			of.Class = Host
		}
	}()
	of.Class = spec.Reaches(env, args)
	return of
}

// listed asks the hook of a tool; a hook that panics lists nothing.
func listed(env Env, spec Spec, args json.RawMessage) (ok bool) {
	if spec.Listed == nil || spec.Class != Outward {
		return false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return spec.Listed(env, args)
}

// subject is what rules about a call of a tool are about; ok is false when rules
// can be about the tool alone, or the hook of the tool fails.
func subject(spec Spec, args json.RawMessage) (s string, ok bool) {
	defer func() {
		if recover() != nil {
			s, ok = "", false
		}
	}()
	switch {
	case spec.Subject != nil:
		s = spec.Subject(args)
	case bare(spec):
		s = exactly(args)
	}
	return s, s != ""
}

func hooked(spec Spec) bool { return spec.Subject != nil || spec.SubjectIn != nil }

// bare reports whether nothing but its arguments says what a call sends out: a person who
// approves some of them for good has said nothing about others.
func bare(spec Spec) bool {
	return !hooked(spec) && (spec.Class == Outward || spec.Reaches != nil || spec.Source != "")
}

// exactly are arguments as a subject: in their one form or, where that is too long
// for a rule, as the sum of it. Empty for arguments that have no such form.
func exactly(args json.RawMessage) string {
	b, err := canonical(args)
	switch {
	case err != nil:
		return ""
	case len(b) <= maxExact:
		return string(b)
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The bounds of rules.
const (
	maxRule    = 500    // bytes of one that an approval makes
	maxExact   = 400    // bytes of arguments that stand in one as they are
	maxSubject = 10_000 // bytes that a pattern is compared with
)

// Rule is what approving a call for good adds to Rules.Always: the tool with
// exactly the subject of the call, or with exactly these arguments, see
// Spec.Subject, or a tool that stays inside and has no subjects. ok is false when
// there is no such rule, because the subject is empty or too long.
func Rule(spec Spec, call claybot.ToolCall) (rule string, ok bool) {
	if !hooked(spec) && !bare(spec) {
		return spec.Name, true
	}
	s, ok := subject(spec, call.Input())
	rule = spec.Name + "(" + s + ")"
	if !ok || len(rule) > maxRule {
		return "", false
	}
	return rule, true
}

func (r Rules) always(spec Spec, args json.RawMessage) bool {
	s, has := subject(spec, args)
	return slices.ContainsFunc(r.Always, func(rule string) bool {
		if has && rule == spec.Name+"("+s+")" {
			return true
		}
		fits, err := path.Match(rule, spec.Name)
		return fits && err == nil
	})
}

func (r Rules) allows(spec Spec, args json.RawMessage) bool {
	return slices.ContainsFunc(r.Allow, func(rule string) bool {
		glob, pattern, bound, err := ParseAllow(rule)
		if err != nil {
			return false
		}
		if fits, err := path.Match(glob, spec.Name); err != nil || !fits {
			return false
		}
		if !bound {
			return true
		}
		s, has := subject(spec, args)
		return has && Permits(pattern, s)
	})
}

// ParseAllow reads a rule of Rules.Allow: "tool", or "tool(pattern)", which is
// bound to subjects.
func ParseAllow(rule string) (glob, pattern string, bound bool, err error) {
	glob, rest, bound := strings.Cut(rule, "(")
	if bound {
		var closed bool
		if pattern, closed = strings.CutSuffix(rest, ")"); !closed || pattern == "" {
			return "", "", false, fmt.Errorf("rule %.80q: want a tool, or a tool with a pattern such as shell(git status*)", rule)
		}
	}
	if _, err := path.Match(glob, ""); err != nil || glob == "" || strings.ContainsFunc(glob, unicode.IsSpace) {
		return "", "", false, fmt.Errorf("rule %.80q: it names no tool", rule)
	}
	return glob, pattern, bound, nil
}

// joiners join another action to a command, or hide what a word of it is.
const joiners = ";&|<>$`(){}\\'\"\n\r"

// joins reports whether * stops at a character.
func joins(r rune) bool {
	return strings.ContainsRune(joiners, r) || unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029'
}

// Permits reports whether a pattern fits a whole subject. * stands for any
// number of characters, but for none that could join another action to a command
// line: ; & | < > $ ` ( ) { } \ quotes, ends of lines and other control
// characters. All other characters stand for themselves.
func Permits(pattern, subject string) bool {
	if len(subject) > maxSubject || len(pattern) > maxSubject {
		return false
	}
	text := []rune(subject)
	// fits[i]: the pattern so far fits the first i characters.
	fits := make([]bool, len(text)+1)
	fits[0] = true
	for _, p := range pattern {
		next := make([]bool, len(text)+1)
		for i := range next {
			switch {
			case p == '*':
				next[i] = fits[i] || i > 0 && next[i-1] && !joins(text[i-1])
			case i > 0:
				next[i] = fits[i-1] && text[i-1] == p
			}
		}
		fits = next
	}
	return fits[len(text)]
}
