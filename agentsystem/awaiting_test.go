package agentsystem_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// A waiting run is one of many, with what is to become of it.
type waitingRun struct {
	claybot.Descriptor
	id       claybot.RunID
	question claybot.Question
	fallback bool      // there is a default
	answer   time.Time // when a person answers; zero for never
}

const week = 7 * 24 * time.Hour

// A thousand runs wait, up to a week: none of them has a goroutine or a timer,
// each expires in its time, and a restart in the middle changes nothing.
func TestThousandRunsWait(t *testing.T) {
	n, span := 1000, week
	if raced || testing.Short() {
		n, span = 200, 8*time.Hour
	}
	bubble(t, func(r *rig) {
		r.engine = engineFunc(asks)
		r.start()
		dice := rand.New(rand.NewPCG(5, 7))
		idle := runtime.NumGoroutine()
		var all []waitingRun
		born := timersBorn(r.T, func() {
			for i := range n {
				all = append(all, r.wait(i, span, dice))
			}
			synctest.Wait()
		})
		if got := runtime.NumGoroutine(); got > idle+5 {
			t.Errorf("%d goroutines when %d runs wait, %d when none does", got, n, idle)
		}
		if born > 20 {
			t.Errorf("%d runs wait with %d timers", n, born)
		}
		r.livesThrough(all, span)
		if open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), ""); err != nil || len(open) > 0 {
			t.Errorf("open are %d, %v", len(open), err)
		}
		for _, w := range all {
			r.checkEnd(w)
		}
	})
}

// wait starts the i-th run, which is asked something for a random time.
func (r *rig) wait(i int, span time.Duration, dice *rand.Rand) waitingRun {
	r.Helper()
	user := fmt.Sprint("user", i)
	w := waitingRun{Descriptor: claybot.User("chat", "dm-"+user, user), fallback: dice.IntN(2) == 0}
	q := askedFor{Question: claybot.Question{Key: "k", Text: "Which?", Type: claybot.QuestionSelect, Options: []string{"red", "green"}, Required: true}}
	q.Wait = time.Minute + time.Duration(dice.Int64N(int64(span-time.Minute)))
	if w.fallback {
		q.Default = "green"
	}
	if i%3 == 0 {
		w.answer = time.Now().Add(time.Duration(dice.Int64N(int64(q.Wait - 10*time.Second))))
	}
	text, err := json.Marshal([]askedFor{q})
	if err != nil {
		r.Fatal(err)
	}
	r.post(w.Descriptor, msg("ask "+user, string(text)))
	synctest.Wait()
	open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), r.agent(w.Descriptor))
	if err != nil || len(open) != 1 {
		r.Fatalf("%s is asked %v, %v", user, open, err)
	}
	w.id, w.question = open[0].Run, open[0].Question
	return w
}

// timersBorn counts the timers that are made by do and still there afterwards.
func timersBorn(t *testing.T, do func()) int {
	t.Helper()
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	probe := time.AfterFunc(week, func() {})
	do()
	runtime.MemProfileRate = rate
	for range 3 { // a profile is as of the collection before the last one
		runtime.GC()
	}
	var records []runtime.MemProfileRecord
	count, ok := runtime.MemProfile(nil, false)
	for !ok { // what other tests have left in it counts, too, and grows meanwhile
		records = make([]runtime.MemProfileRecord, count+1000)
		count, ok = runtime.MemProfile(records, false)
	}
	timers := int64(0)
	for _, rec := range records[:count] {
		frames := runtime.CallersFrames(rec.Stack())
		for f, more := frames.Next(); ; f, more = frames.Next() {
			if f.Function == "time.newTimer" || f.Function == "time.NewTimer" || f.Function == "time.AfterFunc" || f.Function == "time.NewTicker" {
				timers += rec.InUseObjects()
				break
			}
			if !more {
				break
			}
		}
	}
	if timers < 1 {
		t.Error("the profile does not see the timer of this test")
	}
	probe.Stop()
	return int(timers)
}

// livesThrough lets a span pass, with the answers in it and a restart in the
// middle.
func (r *rig) livesThrough(all []waitingRun, span time.Duration) {
	r.Helper()
	begun := time.Now()
	answers := slices.DeleteFunc(slices.Clone(all), func(w waitingRun) bool { return w.answer.IsZero() })
	slices.SortFunc(answers, func(a, b waitingRun) int { return a.answer.Compare(b.answer) })
	restarted := false
	for _, w := range answers {
		if middle := begun.Add(span / 2); !restarted && w.answer.After(middle) {
			time.Sleep(time.Until(middle))
			r.crash()
			r.start()
			restarted = true
		}
		time.Sleep(time.Until(w.answer))
		said := claybot.Answer{Text: "red", By: w.OwnerID(), Via: claybot.ViaButton}
		if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), w.question.ID, said); err != nil {
			r.Errorf("answer of %s: %v", w.UserID, err)
		}
	}
	if !restarted {
		r.Error("there was no restart")
	}
	time.Sleep(time.Until(begun.Add(span + time.Minute)))
	synctest.Wait()
}

// checkEnd requires that a run ended as it should, when it should.
func (r *rig) checkEnd(w waitingRun) {
	r.Helper()
	run, err := r.db.Run(r.Context(), w.id)
	if err != nil {
		r.Fatal(err)
	}
	due, state, told := w.question.Expires.Time(), claybot.RunCanceled, ""
	switch {
	case !w.answer.IsZero():
		due, state, told = w.answer, claybot.RunSucceeded, `told k="red"/button/`+w.OwnerID()
	case w.fallback:
		state, told = claybot.RunSucceeded, `told k="green"/default/`
	}
	if late := run.Ended.Time().Sub(due.Truncate(time.Millisecond)); run.State != state || late < 0 || late > 2*time.Second {
		r.Errorf("the run of %s is %s %s after it was due, want %s", w.UserID, run.State, late, state)
	}
	if got := r.history(w.Descriptor); told != "" && !strings.HasSuffix(got[len(got)-1], told) {
		r.Errorf("%s: history %q, want %q at its end", w.UserID, got, told)
	}
}
