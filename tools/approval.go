package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// maxAction is the longest action, in characters as it is shown, that can be
// approved: no person reads more.
const maxAction = 20_000

// errLongAction is what an agent reads about a longer one.
var errLongAction = fmt.Errorf("the action is longer than %d characters, which is too long to approve; make it shorter or split it", maxAction)

// Grounds are why a call is asked about: the reason, a sentence without its period, and
// what the agent says about it, which is untrusted. Person is the name of the agent's
// person, as far as it is known. Say says the text of the question; nil: in English.
type Grounds struct {
	Why, Says, Person string
	// Doing is what the call does, in the words of people; empty where only the name of the
	// tool is known. Own: only the agent's own person decides.
	Doing string
	Own   bool
	Say   Say
	// Called names a person or a channel, connector/id; nil: by the id alone.
	Called func(id string) string
}

// Approval is the question whether an agent may make a call. Its text shows the
// whole action: the tool, every argument, and below, in sentences, what they mean where
// only the place of the call says so (see Spec.In), who asks, where it runs, and why. The
// argument that Spec.Whole names stands in one piece, as it is; what cannot be seen, turns
// the direction of writing, or looks like something else is written as ⟨U+XXXX⟩, and long
// gaps as their length. So do the arguments of a tool whose action has words, see Grounds.Doing,
// with a line or more for each. Other arguments stand as JSON in which nothing is hidden: such
// characters are written as \uXXXX, and a string of several lines as several ones, each on
// a line of its own, that follow each other without a comma. Read so, the text gives back
// what the tool gets, and Digest is bound to the same.
//
// The text may be ten times longer than a message in a chat; it is never cut. It
// is no question of a model, so Question.Valid is not for it. The place is where
// the action runs, empty for nowhere in particular; the Digest is bound to it. The question
// can be edited unless its Args are taken out.
//
// The error says in a sentence why the action cannot be approved.
func Approval(agent claybot.Agent, place string, spec Spec, call claybot.ToolCall, g Grounds) (claybot.Question, error) {
	if spec.Name != call.Name || !nameForm.MatchString(call.Name) {
		return claybot.Question{}, fmt.Errorf("the tool %.80q cannot be named in an approval", call.Name)
	}
	args, err := canonical(call.Input())
	if err != nil {
		return claybot.Question{}, fmt.Errorf("the arguments cannot be shown: %w", err)
	}
	d := display{say: g.Say}
	if err := d.action(spec, args, g.Doing); err != nil {
		return claybot.Question{}, err
	}
	d.circumstances(agent, place, spec, args, g)
	if utf8.RuneCountInString(d.String()) > maxAction {
		return claybot.Question{}, errLongAction
	}
	rule, ok := Rule(spec, call)
	return claybot.Question{
		Text: d.String(), Type: claybot.QuestionConfirm, Required: true, Tool: call.Name, ToolCallID: call.ID,
		Digest: Digest(agent.ID, place, call), Args: string(args), Rule: rule, Once: !ok,
	}, nil
}

// Editable says why a person may not approve a call in place of the one that he
// was asked about: no such tool, arguments that do not fit its schema, or ones
// that cannot be shown. The words are for the person.
func (s *Set) Editable(agent claybot.Agent, call claybot.ToolCall) error {
	if !strings.HasPrefix(strings.TrimSpace(call.Args), "{") {
		return errors.New("the arguments must be a JSON object")
	}
	if err := s.Check(call); err != nil {
		return err
	}
	spec, _ := s.Spec(call.Name)
	_, err := Approval(agent, "", spec, call, Grounds{})
	return err
}

// Edited is the result of a call whose arguments a person changed when he
// approved it, with what he changed them to, for the model.
func Edited(args, result string) string {
	return "A person approved this call with other arguments than yours. What ran was: " + args + "\n\n" + result
}

// Granted reports whether a person has approved what a tool does for the rest of
// this context: since the last start or reset. What was asked for one action alone
// counts for that one alone.
func Granted(history []claybot.Record, tool string) bool {
	return approvedOf(history, false, func(q claybot.Question, _ []claybot.Record, a claybot.Answer) bool {
		return q.Tool == tool && !q.Once && a.Scope == claybot.ApproveSession
	})
}

// granted reports whether a person has approved a call by what they said to earlier ones
// since the last start or reset. With knowing, only approvals after the first untrusted
// content count: earlier ones were given to a run that had not read it. What discloses
// something, and with Spec.PerSubject every approval, is about its subject alone, or with
// Spec.Batch about the calls of one batch.
func granted(history []claybot.Record, spec Spec, call claybot.ToolCall, knowing bool) bool {
	rule, ok := Rule(spec, call)
	return approvedOf(history, knowing, func(q claybot.Question, before []claybot.Record, a claybot.Answer) bool {
		if q.Tool != spec.Name {
			return false
		}
		session, same := a.Scope == claybot.ApproveSession && !q.Once, ok && q.Rule == rule
		if spec.Discloses != nil {
			return session && same
		}
		return session || spec.PerSubject && (same || a.Args == "" && together(before, spec, json.RawMessage(q.Args), call.Input()))
	})
}

// approvedOf reports whether a person approved an action that fits since the last start
// or reset, and with knowing, after the first untrusted content. fits gets the records from
// before the question as well: what the person knew of.
func approvedOf(history []claybot.Record, knowing bool, fits func(q claybot.Question, before []claybot.Record, a claybot.Answer) bool) bool {
	asked := make(map[string]int)
	history = claybot.Restored(history)
	for i, r := range history {
		if knowing {
			knowing = !r.Untrusted()
			continue
		}
		switch {
		case r.Type == claybot.RecordQuestion && r.Question != nil && r.Question.Type == claybot.QuestionConfirm:
			asked[r.Question.ID] = i
		case r.Type == claybot.RecordAnswer && r.Answer != nil && Approved(*r.Answer):
			if at, ok := asked[r.Answer.Question]; ok && fits(*history[at].Question, history[:at], *r.Answer) {
				return true
			}
		}
	}
	return false
}

// Approved reports whether an answer to a confirm says yes.
func Approved(a claybot.Answer) bool {
	return bytes.Equal(bytes.TrimSpace(a.Value), []byte("true"))
}

type display struct {
	strings.Builder
	say Say
}

func (d *display) text(s string) { d.WriteString(s) }

// maxNumber is the longest number that can be approved, in bytes.
const maxNumber = 72

// maxIndent is how many levels are indented. Deeper ones stay at that column,
// where a reader still finds them.
const maxIndent = 20

func (d *display) line(depth int) {
	d.WriteByte('\n')
	for range min(depth, maxIndent) {
		d.WriteString("  ")
	}
}

func (d *display) value(dec *json.Decoder, depth int) error {
	if d.Len() > utf8.UTFMax*maxAction {
		return errLongAction
	}
	t, err := dec.Token()
	if err != nil {
		return fmt.Errorf("the arguments cannot be shown: %w", err)
	}
	switch v := t.(type) {
	case json.Delim:
		return d.list(dec, v, depth)
	case string:
		d.literal(v, depth)
	case json.Number:
		if len(v) > maxNumber {
			return errors.New("a number is too long to approve")
		}
		d.text(string(v))
	default:
		d.text(string(scalar(t)))
	}
	return nil
}

func (d *display) list(dec *json.Decoder, begin json.Delim, depth int) error {
	d.text(begin.String())
	object := begin == '{'
	seen := make(map[string]string)
	empty := true
	for ; dec.More(); empty = false {
		if !empty {
			d.text(",")
		}
		d.line(depth + 1)
		if object {
			t, err := dec.Token()
			if err != nil {
				return fmt.Errorf("the arguments cannot be shown: %w", err)
			}
			name, _ := t.(string) // names are strings
			if other, twice := seen[folded(name)]; twice {
				return fmt.Errorf("the members %.80q and %.80q differ in capitals only, so it is unclear which one counts", other, name)
			}
			seen[folded(name)] = name
			d.literal(name, depth+1)
			d.text(": ")
		}
		if err := d.value(dec, depth+1); err != nil {
			return err
		}
		if d.Len() > utf8.UTFMax*maxAction {
			return errLongAction
		}
	}
	end, err := dec.Token()
	if err != nil {
		return fmt.Errorf("the arguments cannot be shown: %w", err)
	}
	if !empty {
		d.line(depth)
	}
	d.text(fmt.Sprint(end))
	return nil
}

// literal writes a string, one of several lines in pieces. The pieces of a string stand one
// level deeper than where it begins.
func (d *display) literal(s string, depth int) {
	d.text(`"`)
	all := revealed(s)
	for i, unit := range all {
		d.text(unit)
		if i < len(all)-1 && unit == `\n` {
			d.text(`"`)
			d.line(depth + 1)
			d.text(`"`)
		}
	}
	d.text(`"`)
}

func folded(s string) string {
	return strings.Map(func(r rune) rune {
		orbit := []rune{r}
		for x := unicode.SimpleFold(r); x != r; x = unicode.SimpleFold(x) {
			orbit = append(orbit, x)
		}
		return slices.Min(orbit)
	}, s)
}
