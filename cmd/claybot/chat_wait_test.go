package main

import (
	"strings"
	"testing"

	api "github.com/claybot/claybot/client"
)

// The reply to a message is the answer of its run: neither a list that is kept
// up to date nor a word of claybot in between.
func TestWaitEndsWithTheReply(t *testing.T) {
	const (
		started  = `event {"type":"RunStarted","runId":"r1","data":{"messages":["m"]}}`
		finished = `event {"type":"RunFinished","runId":"r1","data":{"output":"done"}}`
		quiet    = `event {"type":"RunFinished","runId":"r1","data":{"output":""}}`
		broke    = `event {"type":"RunFailed","runId":"r1","data":{}}`
		canceled = `event {"type":"RunCanceled","runId":"r1","data":{}}`
		halfway  = `event {"type":"RunCanceled","runId":"r1","data":{"by":"user","output":"do *(stopped)*"}}`
		partial  = `message {"kind":"answer","run":"r1","text":"do *(stopped)*"}`
		todos    = `message {"kind":"answer","run":"r1","shown":"todos","text":"- tea"}`
		compact  = `message {"kind":"notice","run":"r1","text":"I made room"}`
		sorry    = `message {"kind":"notice","run":"r1","text":"sorry"}`
		answer   = `message {"kind":"answer","run":"r1","text":"done"}`
		asks     = `event {"type":"AwaitingInput","runId":"r1","data":{"questions":[{"id":"q1"},{"id":"q2"}]}}`
		helpers  = `event {"type":"AwaitingInput","runId":"r1","data":{"answers":["answer/x"]}}`
		resumed  = `event {"type":"RunResumed","runId":"r1","data":{"messages":["m0","answer/q1"]}}`
		answered = `event {"type":"Answered","runId":"r1","data":{"questionId":"q1","messageId":"m"}}`
		q1       = `message {"id":"question/q1/1","kind":"notice","run":"r1","message":"m","text":"Which?"}`
		q2       = `message {"id":"question/q2/1","kind":"notice","run":"r1","message":"m","text":"How many?"}`
		unfit    = `message {"id":"unfit/q1","kind":"notice","run":"r1","message":"m","text":"no such colour"}`
		edit     = `message {"id":"question/q1/1/answered","kind":"notice","run":"r1","shown":"question/q1","text":"Which? red"}`
		other    = `message {"kind":"answer","run":"r2","text":"not mine"}`
	)
	for name, tc := range map[string]struct {
		events []string
		reply  string // "" for no end yet
		failed bool
	}{
		"an answer":                     {[]string{started, finished, answer}, "done", false},
		"the answer comes first":        {[]string{started, answer, finished}, "done", false},
		"said before it is known whose": {[]string{other, answer, started, finished}, "done", false},
		"sorry before all":              {[]string{sorry, started, broke}, "sorry", true},
		"asked before all":              {[]string{q2, q1, started, asks}, "Which?\n\nHow many?", false},
		"only of others":                {[]string{other, started, finished}, "", false},
		"todos are not an answer":       {[]string{started, todos, finished}, "", false},
		"todos before it":               {[]string{started, todos, finished, answer}, "done", false},
		"a notice is none":              {[]string{started, compact, finished}, "", false},
		"a notice before it":            {[]string{started, compact, finished, answer}, "done", false},
		"another run":                   {[]string{started, finished, other}, "", false},
		"a failure":                     {[]string{started, broke, sorry}, "sorry", true},
		"an answer, then failed":        {[]string{started, answer, broke}, "", false},
		"failed after a step":           {[]string{started, answer, broke, sorry}, "sorry", true},
		"nothing to say":                {[]string{started, quiet}, "-", false},
		"stopped":                       {[]string{started, canceled}, "-", true},
		"stopped halfway":               {[]string{started, halfway, partial}, "do *(stopped)*", true},
		"stopped, the text comes first": {[]string{started, partial, halfway}, "do *(stopped)*", true},
		"asked":                         {[]string{started, asks, q1, q2}, "Which?\n\nHow many?", false},
		"asked, events later":           {[]string{started, q1, q2, asks}, "Which?\n\nHow many?", false},
		"asked, half of it":             {[]string{started, asks, q2}, "", false},
		"answered elsewhere":            {[]string{started, asks, resumed, q1, q2, edit, answer, finished}, "done", false},
		"waits for helpers":             {[]string{started, helpers, resumed, answer, finished}, "done", false},
		"an answer goes on":             {[]string{resumed, answered, answer, finished}, "done", false},
		"an answer does not fit":        {[]string{unfit}, "no such colour", false},
		"an answer, then asked":         {[]string{resumed, answered, asks, q1, q2}, "Which?\n\nHow many?", false},
		"damaged":                       {[]string{started, "event [", "message ["}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWait("m", "hello")
			for i, line := range tc.events {
				kind, data, _ := strings.Cut(line, " ")
				done, reply, failed := w.see(api.Frame{Name: kind, Data: []byte(data)})
				if !done {
					if i == len(tc.events)-1 && tc.reply != "" {
						t.Errorf("it has no end, want %q", tc.reply)
					}
					continue
				}
				if want := strings.TrimPrefix(tc.reply, "-"); i != len(tc.events)-1 || tc.reply == "" || reply != want || failed != tc.failed {
					t.Errorf("event %d ends it with %q, failed %v; want %q, %v", i, reply, failed, want, tc.failed)
				}
			}
		})
	}
}

// A newer version of a list is a block of its own: what a terminal has printed
// stays. The text that grows meanwhile is printed again behind it, once.
func TestTerminalShowsNewerVersions(t *testing.T) {
	var out strings.Builder
	w := &talk{out: &out}
	for _, line := range []string{
		`message {"kind":"notice","run":"r1","shown":"todos","text":"☐ tea"}`,
		`preview {"run":"r1","step":1,"text":"I beg"}`,
		`message {"kind":"notice","run":"r1","shown":"todos","replaces":["t1"],"text":"☑ tea"}`,
		`preview {"run":"r1","step":1,"text":"I begin"}`,
		`message {"kind":"answer","run":"r1","text":"I begin and end"}`,
	} {
		kind, data, _ := strings.Cut(line, " ")
		w.show(api.Frame{Name: kind, Data: []byte(data)})
	}
	if want := "☐ tea\nI beg\n☑ tea\nI begin and end\n"; out.String() != want {
		t.Errorf("the terminal shows\n%s\nwant\n%s", out.String(), want)
	}
}
