package agentsystem_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/questions"

	"pgregory.net/rapid"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// crowd is how many people are asked at the same time in one world: each is one
// sequence.
const crowd = 6

// sequences is how many random sequences are played.
func sequences() int {
	if n, err := strconv.Atoi(os.Getenv("CLAYBOT_SEQUENCES")); err == nil {
		return n
	}
	if raced || testing.Short() {
		return 36
	}
	return 180
}

// Random things are done to runs that ask, by persons, programs, time and
// crashes: what counts, what is replied and how the runs end is what the rules
// say.
func TestQuestionRules(t *testing.T) {
	t.Parallel()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // a seed is told, too
		t.Fatal(err)
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		worlds := (sequences() + crowd - 1) / crowd
		if testing.Short() {
			worlds *= 5 // of which rapid takes a fifth
		}
		if err := flag.Set("rapid.checks", strconv.Itoa(worlds)); err != nil {
			t.Fatal(err)
		}
	}
	played, replies := 0, make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.SliceOfN(rapid.Uint32(), 20, 20)
		begin := rapid.SliceOfN(first, crowd, crowd).Draw(rt, "runs")
		steps := rapid.SliceOfN(rapid.SliceOfN(rapid.Uint32(), 12, 12), 30, 60).Draw(rt, "steps")
		var differs string
		bubble(t, func(r *rig) {
			w := &world{rig: r, replies: replies}
			defer func() {
				x := recover()
				if d, ok := x.(difference); ok {
					differs = string(d)
				} else if x != nil {
					panic(x)
				}
			}()
			w.begin(begin)
			for _, s := range steps {
				w.draws = s
				w.step()
			}
			w.finish()
			played += len(w.people)
		})
		if differs != "" {
			rt.Fatal(differs)
		}
	})
	t.Logf("%d sequences without a difference; %v", played, replies)
}

// A difference is what the system does otherwise than the rules say, after what
// was done. Panicking with it ends a world.
type difference string

// A world is a system with people who are asked. What happens in it is decided
// by numbers that were drawn before.
type world struct {
	*rig
	draws   []uint32
	people  []*person
	n       int // ids given
	done    []string
	replies map[string]int
	crashes int
}

// pick is a number below n.
func (w *world) pick(n int) int {
	if len(w.draws) == 0 {
		return 0
	}
	x := w.draws[0]
	w.draws = w.draws[1:]
	return int(x % uint32(n))
}

// some is one of several.
func some[T any](w *world, all ...T) T { return all[w.pick(len(all))] }

// chance is true in one of n cases.
func (w *world) chance(n int) bool { return w.pick(n) == n-1 }

func (w *world) differs(format string, args ...any) {
	panic(difference(fmt.Sprintf("%s\nafter\n\t%s", fmt.Sprintf(format, args...), strings.Join(w.done, "\n\t"))))
}

// does notes what is done.
func (w *world) does(format string, args ...any) {
	w.done = append(w.done, time.Now().UTC().Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

// A person is a user whose run asks.
type person struct {
	claybot.Descriptor
	rules
	run   claybot.RunID
	typed []typedText
}

// A typedText is a text of a person, and what became of it.
type typedText struct {
	message claybot.AgentMessage
	reply   string
}

// A keyLine is what a person types in a line: a value, perhaps with a key.
type keyLine struct{ key, value string }

func (l keyLine) String() string {
	if l.key == "" {
		return l.value
	}
	return l.key + ": " + l.value
}

// readLines are the values of the open questions that lines name: lines without
// a key that is known belong to the one before.
func readLines(open []claybot.Question, lines []keyLine) (whole string, given map[string]string) {
	last, given := "", make(map[string]string)
	for i, l := range lines {
		whole += l.String() + "\n"
		known := slices.ContainsFunc(open, func(q claybot.Question) bool { return q.Key == l.key })
		switch {
		case known && (i == 0 || last != ""):
			last, given[l.key] = l.key, l.value
		case last != "":
			given[last] += "\n" + l.String()
		}
	}
	return whole, given
}

// samples are values for each type: those that fit stand first.
var samples = map[claybot.QuestionType][]string{
	claybot.QuestionText:        {"a word", strings.Repeat("long ", 9)},
	claybot.QuestionTextarea:    {"some words", strings.Repeat("long ", 9)},
	claybot.QuestionEmail:       {"ann@example.org", "Ann, at home"},
	claybot.QuestionEmailList:   {"ann@example.org; bob@example.org", "ann@example.org and bob"},
	claybot.QuestionDatetime:    {"2026-03-31 15:04", "one of these days"},
	claybot.QuestionDate:        {"2026-03-31", "2026-02-30"},
	claybot.QuestionTime:        {"15:04", "25:00"},
	claybot.QuestionNumber:      {"3", "99"},
	claybot.QuestionSelect:      {"green", "2", "purple"},
	claybot.QuestionMultiselect: {"red, green", "1", "red, purple"},
	claybot.QuestionBoolean:     {"no", "perhaps"},
	claybot.QuestionConfirm:     {"approve", "deny", "perhaps"},
}

// An askedFor is a question with how long it is open.
type askedFor struct {
	claybot.Question
	Wait time.Duration
}

// drawQuestion is the i-th question of a run of own.
func (w *world) drawQuestion(own string, i int) askedFor {
	types := slices.Sorted(maps.Keys(samples))
	q := askedFor{Question: claybot.Question{
		Key: fmt.Sprint("k", i), Text: fmt.Sprint("Question ", i, "?"),
		Type: some(w, types...), Required: w.chance(2),
	}}
	switch q.Type {
	case claybot.QuestionSelect, claybot.QuestionMultiselect:
		q.Options = []string{"red", "green"}
	case claybot.QuestionText, claybot.QuestionTextarea, claybot.QuestionNumber:
		most := 20.0
		q.Max = &most
	}
	if q.Type != claybot.QuestionConfirm && w.chance(2) {
		q.Default = samples[q.Type][0]
	}
	q.Approvers = some(w, nil, nil, nil, nil, []string{"chat/bob"}, []string{own, "chat/bob"}, []string{"chat/bob", "chat/zed"}, []string{"chat/zed"})
	q.Wait = time.Duration(1+w.pick(9)) * 10 * time.Minute
	if err := q.Valid(); err != nil {
		w.Fatal(err)
	}
	return q
}

// value is something to say to a question.
func (w *world) value(q claybot.Question) string {
	if w.chance(6) {
		q.Type = some(w, slices.Sorted(maps.Keys(samples))...)
	}
	return some(w, samples[q.Type]...)
}

// asks is an engine that asks what its message says, and puts out what it is
// told.
func asks(ctx context.Context, t *runs.Turn, yield func(claybot.Record, error) bool) {
	if slices.ContainsFunc(t.History, func(r claybot.Record) bool { return r.Run == t.Run.ID && r.Type == claybot.RecordAssistant }) {
		return // said before a crash
	}
	say := claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "re: "}
	for _, m := range t.Messages {
		say.Text += m.Text
		var all []askedFor
		if json.Unmarshal([]byte(m.Text), &all) != nil || len(all) == 0 {
			continue
		}
		qs := make([]claybot.Question, len(all))
		for i, q := range all {
			qs[i] = q.Question
			qs[i].Expires = claybot.At(time.Now().Add(q.Wait))
		}
		answers, wait, err := t.Ask(ctx, "round", qs)
		switch {
		case err != nil:
			yield(claybot.Record{}, err)
			return
		case wait != nil:
			yield(claybot.Record{}, &runs.WaitError{Awaiting: *wait})
			return
		}
		say.Text = toldText(qs, func(i int) claybot.Answer { return answers[i] })
	}
	yield(say, nil)
}

func toldText(qs []claybot.Question, answer func(i int) claybot.Answer) string {
	text := "told"
	for i, q := range qs {
		a := answer(i)
		text += fmt.Sprintf(" %s=%s/%s/%s", q.Key, a.Value, a.Via, a.By)
	}
	return text
}

// begin starts the system and the runs.
func (w *world) begin(draws [][]uint32) {
	w.line = platforms[0].line
	w.engine = engineFunc(asks)
	w.start()
	w.post(bob, msg("hello", "hello"))
	for i, draw := range draws {
		w.draws = draw
		id := fmt.Sprint("p", i)
		p := &person{Descriptor: claybot.User("chat", "dm-"+id, id)}
		p.own, p.said, p.warned = p.OwnerID(), make(map[string]claybot.Answer), make(map[string]bool)
		var qs []askedFor
		for k := range 1 + w.pick(4) {
			qs = append(qs, w.drawQuestion(p.own, k))
		}
		text, err := json.Marshal(qs)
		if err != nil {
			w.Fatal(err)
		}
		first := p.message(w.id("ask"), string(text))
		w.post(p.Descriptor, first)
		synctest.Wait()
		open, err := w.system.Questions.Answers.OpenQuestions(w.Context(), w.agent(p.Descriptor))
		if err != nil || len(open) != len(qs) {
			w.differs("%s is asked %d questions, want %d (%v)", id, len(open), len(qs), err)
		}
		p.asked = make([]claybot.Question, len(qs))
		for _, q := range open {
			k := slices.IndexFunc(qs, func(x askedFor) bool { return x.Key == q.Key })
			p.asked[k], p.run = q.Question, q.Run
			if want := claybot.At(time.Now().Add(qs[k].Wait)); q.Expires != want {
				w.differs("question %s expires %s, want %s", q.Key, q.Expires.Time(), want.Time())
			}
		}
		w.does("%s is asked %s", p.UserID, text)
		w.people = append(w.people, p)
	}
}

func (w *world) id(kind string) string { w.n++; return fmt.Sprint(kind, w.n) }

func (p *person) message(id, text string) claybot.AgentMessage {
	m := msg(id, text)
	m.From = claybot.Sender{UserID: p.UserID, Name: p.UserID}
	return m
}

// step does one thing.
func (w *world) step() {
	p := some(w, w.people...)
	if open := slices.DeleteFunc(slices.Clone(w.people), func(p *person) bool { return !p.waits() }); len(open) > 0 && !w.chance(5) {
		p = some(w, open...)
	}
	q := some(w, p.asked...)
	w.steady()
	switch some(w,
		"text", "text", "text", "lines", "lines", "lines", "press", "press", "press", "press", "one", "set", "set", "again", "again", "approve", "approve",
		"time", "time", "restart", "crash", "end", "nonsense",
	) {
	case "text":
		w.types(p, keyLine{"", w.value(q)})
	case "lines":
		w.types(p, w.lines(p, q)...)
	case "press":
		w.presses(p, q)
	case "one":
		value := some(w, w.value(q), "")
		w.do(p, fmt.Sprintf("%s gets %q over HTTP", q.Key, value), func() (string, error) {
			return heard(w.system.Questions.Answers.AnswerQuestion(w.Context(), q.ID, claybot.Answer{Text: value, By: "operator", Via: claybot.ViaHTTP}))
		}, func() string {
			reply, _ := p.answer(map[string]string{q.Key: value}, "operator", claybot.ViaHTTP)
			return reply
		})
	case "set":
		w.sets(p, q)
	case "again":
		w.redelivers(p)
	case "approve":
		w.decides(p)
	case "end":
		kind := some(w, claybot.MessageCancel, claybot.MessageReset)
		w.ends(p, typed(w.id("end"), kind, ""), map[claybot.MessageType]string{claybot.MessageCancel: "user", claybot.MessageReset: "reset"}[kind])
	case "time":
		w.passes(time.Duration(1+w.pick(20)) * time.Minute)
	case "restart":
		w.does("restart")
		w.restart()
		w.checkAll()
	case "crash":
		w.dies()
		w.checkAll()
	case "nonsense":
		w.nonsense(p)
	}
}

// dies is a crash, and the next process.
func (w *world) dies() {
	w.does("the process dies")
	w.crash()
	w.start()
	synctest.Wait()
}

// heard is an error of an answer in the words of the rules.
func heard(err error) (string, error) {
	var unfit *questions.AnswerError
	switch {
	case err == nil:
		return "ok", nil
	case errors.As(err, &unfit):
		return "unfit", nil
	case errors.Is(err, storage.ErrState):
		return "closed", nil
	case errors.Is(err, storage.ErrNotFound):
		return "not his", nil
	}
	return "", err
}

// do does something to a run, and requires the reply of the rules and what they
// say of the answers. The process may die on the way: then it is done again, as
// platforms and programs do.
func (w *world) do(p *person, what string, act func() (string, error), ruled func() string) string {
	crash := 0
	if w.chance(5) {
		crash = 1 + w.pick(8)
	}
	w.does("%s: %s", p.UserID, what)
	w.fuse.blowIn(crash)
	got, err := act()
	synctest.Wait()
	want := ruled()
	w.fuse.blowIn(0)
	switch {
	case w.fuse.dead():
		w.crashes++
		w.replies["crash"]++
		w.dies()
		time.Sleep(time.Minute)
		if _, err := act(); err != nil {
			w.differs("again after a crash: %v", err)
		}
		synctest.Wait()
	case err != nil:
		w.differs("%v, want %q", err, want)
	case got != want:
		w.differs("the reply is %q, want %q", got, want)
	}
	w.replies[want]++
	w.check(p)
	return want
}
