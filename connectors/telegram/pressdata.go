package telegram

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
)

// The format of callback data. Data is neither secret nor trusted: any user who
// may write to the bot can send any data. The system authorizes each answer,
// and a command counts as if the user had typed it.
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
//	s:[<user>]                                stop the run whose answer grows here
//
// <chosen> are the selected options as a bit mask in hex, so the state is in
// the message and survives a restart. <user>, in base 36, is the only user who
// may select; without it, Done is authorized instead. To stop, it is who is answered. O, T and D instead of o,
// t and d mean that the value is the button's label, because a number would be
// read as an option.
const (
	questionPrefix = "q:"
	offerPrefix    = "c:"
	stopPrefix     = "s:"
)

// A verb is the action of a question's button.
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

// A press is the decoded data of a question's button.
type press struct {
	question string
	verb     verb
	named    bool   // the value is the label, not the number
	option   int    // of verbOption and verbToggle, from 1
	chosen   uint64 // of verbToggle and verbDone
	user     int64  // of verbToggle; 0 allows all users
}

var questionForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,48}$`)

// data encodes p as callback data; ok is false if it is too long.
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

// readPress decodes callback data. It refuses data that the method data would
// not produce.
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
		p.chosen, _ = strconv.ParseUint(chosen, 16, 64) // unreadable data differs when encoded again
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

// stopData encodes who is answered; 0 in a private chat.
func stopData(user int64) string {
	if user == 0 {
		return stopPrefix
	}
	return stopPrefix + strconv.FormatInt(user, 36)
}

// readStop decodes what stopData encodes.
func readStop(s string) (user int64, ok bool) {
	rest, ok := strings.CutPrefix(s, stopPrefix)
	user, _ = strconv.ParseInt(rest, 36, 64) // unreadable data differs when encoded again
	return user, ok && user >= 0 && stopData(user) == s
}

// readOption parses an option number; 0 means invalid.
func readOption(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// bit returns the bit of the option in chosen.
func (p press) bit() uint64 { return 1 << (p.option - 1) }

// scope returns the scope of the approval.
func (p press) scope() claybot.ApprovalScope {
	if p.verb == verbSession {
		return claybot.ApproveSession
	}
	return claybot.ApproveOnce
}
