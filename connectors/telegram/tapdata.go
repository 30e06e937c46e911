package telegram

import (
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
)

// What the data of our buttons looks like. Data is no secret and proves
// nothing: whoever may write to the bot can send any. Who may answer is asked
// of the system for each tap, and a command is taken as if it had been typed.
//
//	q:<question>:y                            yes, or approved
//	q:<question>:s                            approved for this session
//	q:<question>:n                            no, or denied
//	q:<question>:e                            how to approve with other arguments
//	q:<question>:k                            no answer
//	q:<question>:o<option>                    one option, counted from 1
//	q:<question>:t<option>.<chosen>[.<user>]  take or leave an option
//	q:<question>:d<chosen>                    done with choosing
//	c:</command>                              an offer
//
// <chosen> are the options that the keyboard shows as taken, as bits in hex, so
// that the state is in the message and no restart forgets it. <user>, in base
// 36, is who alone may choose; where there is none, who is done is judged.
// O, T and D in place of o, t and d: the value is what stands on the buttons,
// because numbers would be taken for options.
const (
	questionPrefix = "q:"
	offerPrefix    = "c:"
)

// A verb is what a button of a question does.
type verb byte

const (
	verbYes     verb = 'y'
	verbSession verb = 's'
	verbNo      verb = 'n'
	verbEdit    verb = 'e'
	verbSkip    verb = 'k'
	verbOption  verb = 'o'
	verbToggle  verb = 't'
	verbDone    verb = 'd'
)

// A press is what the data of a question's button says.
type press struct {
	question string
	verb     verb
	named    bool   // the value is what stands on the button, not its number
	option   int    // of verbOption and verbToggle, from 1
	chosen   uint64 // of verbToggle and verbDone
	user     int64  // of verbToggle; 0 for anybody
}

var questionForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,48}$`)

// data is p as the data of a button; ok is false when it does not fit.
func (p press) data() (s string, ok bool) {
	v := byte(p.verb)
	if p.named {
		v -= 'a' - 'A'
	}
	s = questionPrefix + p.question + ":" + string(v)
	switch p.verb {
	case verbOption:
		s += strconv.Itoa(p.option)
	case verbToggle:
		s += strconv.Itoa(p.option) + "." + strconv.FormatUint(p.chosen, 16)
		if p.user != 0 {
			s += "." + strconv.FormatInt(p.user, 36)
		}
	case verbDone:
		s += strconv.FormatUint(p.chosen, 16)
	}
	return s, len(s) <= maxDataBytes && questionForm.MatchString(p.question)
}

// readPress reads the data of a question's button. What data would not have
// written is refused.
func readPress(s string) (press, bool) {
	rest, ok := strings.CutPrefix(s, questionPrefix)
	var p press
	p.question, rest, _ = strings.Cut(rest, ":")
	if !ok || rest == "" {
		return press{}, false
	}
	p.verb, rest = verb(rest[0]), rest[1:]
	switch p.verb {
	case 'O', 'T', 'D':
		p.named = true
		p.verb += 'a' - 'A'
	}
	switch p.verb {
	case verbYes, verbSession, verbNo, verbEdit, verbSkip:
	case verbOption:
		p.option = readOption(rest)
	case verbToggle:
		option, rest, _ := strings.Cut(rest, ".")
		chosen, user, _ := strings.Cut(rest, ".")
		p.option = readOption(option)
		p.chosen, _ = strconv.ParseUint(chosen, 16, 64) // what cannot be read is not written again
		p.user, _ = strconv.ParseInt(user, 36, 64)
	case verbDone:
		p.chosen, _ = strconv.ParseUint(rest, 16, 64)
	default:
		return press{}, false
	}
	again, fits := p.data()
	switch {
	case !fits || again != s:
		return press{}, false
	case bits.Len64(p.chosen) > maxOptions || p.option > maxOptions || p.user < 0:
		return press{}, false
	case p.option == 0 && (p.verb == verbOption || p.verb == verbToggle):
		return press{}, false
	}
	return p, true
}

// readOption is 0 for what is no option.
func readOption(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// bit is the option's own among those that are chosen.
func (p press) bit() uint64 { return 1 << (p.option - 1) }

// scope is how far the approval goes that p gives.
func (p press) scope() claybot.ApprovalScope {
	if p.verb == verbSession {
		return claybot.ApproveSession
	}
	return claybot.ApproveOnce
}
