package main

import (
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// untilPrints runs a command again and again until it ends well and its output
// matches, or with ! does not: until-prints REGEXP PROGRAM ARGS... That output stays the standard
// output.
func untilPrints(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until-prints REGEXP PROGRAM [ARGS...]")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	pause := 10 * time.Millisecond
	until(ts, func() (bool, string) {
		time.Sleep(pause) // longer and longer: each look is a process, and stands in the log
		pause = min(pause*3/2, 500*time.Millisecond)
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			return false, err.Error()
		}
		out := ts.ReadFile("stdout")
		return re.MatchString(out) != neg, "it prints " + out
	})
}

// setMoment sets a variable to a time from now, in whole seconds of UTC: moment
// VARIABLE DURATION.
func setMoment(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: moment VARIABLE DURATION")
	}
	d, err := time.ParseDuration(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(d).UTC().Format(time.RFC3339))
}
