package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// telegramPress presses a button of the newest message that has it.
func (r *rig) telegramPress(ts *testscript.TestScript, at, label string) {
	chat, user := person(ts, at)
	until(ts, func() (bool, string) {
		for _, m := range slices.Backward(r.telegram.Sent(chat)) {
			if query, ok := r.telegram.Press(chat, user, m.ID, label); ok {
				r.tap = query
				return true, ""
			}
		}
		return false, fmt.Sprintf("no message in %d has a button %q", chat, label)
	})
}

// telegramToast waits until the bot has answered the last press.
func (r *rig) telegramToast(ts *testscript.TestScript, pattern string) {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	until(ts, func() (bool, string) {
		p, _ := r.telegram.PressByID(r.tap)
		return p.Answered && re.MatchString(p.Text), fmt.Sprintf("the press is %+v", p)
	})
}

// telegramButtons waits until the buttons below all messages match.
func (r *rig) telegramButtons(ts *testscript.TestScript, at, pattern string) {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	chat, _ := person(ts, at)
	until(ts, func() (bool, string) {
		var all []string
		for _, m := range r.telegram.Sent(chat) {
			all = append(all, m.Buttons()...)
		}
		shown := strings.Join(all, " ")
		return re.MatchString(shown), fmt.Sprintf("the buttons are %q", shown)
	})
}
