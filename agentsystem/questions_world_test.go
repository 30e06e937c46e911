package agentsystem_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// lines are answers with their keys to some of the questions, q among them.
func (w *world) lines(p *person, q claybot.Question) (lines []keyLine) {
	for _, x := range p.asked {
		if x.Key == q.Key || w.chance(2) {
			lines = append(lines, keyLine{x.Key, w.value(x)})
		}
	}
	return lines
}

// types is a text in the chat. What became of it is in its receipt.
func (w *world) types(p *person, lines ...keyLine) {
	text, _ := readLines(nil, lines)
	m := p.message(w.id("text"), text)
	reply := w.do(p, fmt.Sprintf("types %q", text), func() (string, error) {
		if err := w.system.Post(w.Context(), p.Descriptor, m); err != nil {
			return "", err
		}
		synctest.Wait()
		return w.fate(m.ID), nil
	}, func() string { return p.text(lines) })
	p.typed = append(p.typed, typedText{m, reply})
}

// fate is what became of a text, in the words of the rules.
func (w *world) fate(id claybot.MessageID) string {
	r, err := w.db.Receipt(w.Context(), id)
	switch {
	case err != nil:
		w.differs("receipt of %s: %v", id, err)
	case r.Skipped == "answer":
		return "ok"
	case r.Skipped != "":
		return r.Skipped
	case r.Run == nil:
		return "later"
	}
	return "ran"
}

// redelivers sends a text again that was sent before, which changes nothing.
func (w *world) redelivers(p *person) {
	if len(p.typed) == 0 {
		return
	}
	m := some(w, p.typed...).message
	before := w.fate(m.ID)
	w.do(p, fmt.Sprintf("%q again", m.Text), func() (string, error) {
		if err := w.system.Post(w.Context(), p.Descriptor, m); err != nil {
			return "", err
		}
		synctest.Wait()
		return w.fate(m.ID) + " again", nil
	}, func() string { return before + " again" })
}

// presses lets the run's user or another one press a button, once or twice.
func (w *world) presses(p *person, q claybot.Question) {
	who := some(w, p.Descriptor, p.Descriptor, bob, claybot.User("chat", "dm-eve", "eve"))
	value := w.value(q)
	for range 1 + w.pick(2) {
		w.do(p, fmt.Sprintf("%s gets %q from %s", q.Key, value, who.UserID), func() (string, error) {
			pressed, err := w.system.Answer(w.Context(), connectors.Press{
				Connector: who.Connector, UserID: who.UserID, ChannelID: who.ChannelID, Answer: claybot.Answer{Question: q.ID, Text: value},
			})
			switch {
			case err != nil:
				return "", err
			case pressed.Text == "":
				return "", fmt.Errorf("the user who pressed is told nothing: %+v", pressed)
			case pressed.OK:
				return "ok", nil
			case pressed.Again:
				return "unfit", nil
			case pressed.Text == "This question is not for you.":
				return "not his", nil
			}
			return "closed", nil
		}, func() string {
			reply, _ := p.answer(map[string]string{q.Key: value}, who.OwnerID(), claybot.ViaButton)
			return reply
		})
	}
}

// sets is a whole set of answers from a program, as a message that it sends
// again when it hears nothing.
func (w *world) sets(p *person, q claybot.Question) {
	values := map[string]string{q.Key: w.value(q)}
	for _, q := range p.asked {
		if w.chance(2) {
			values[q.Key] = w.value(q)
		}
	}
	m := p.message(w.id("set"), "answers")
	agent := agentsystem.Address{Agent: w.agent(p.Descriptor)}
	w.do(p, fmt.Sprintf("gets %q", values), func() (string, error) {
		if _, known, err := w.system.Control.Known(w.Context(), agent, m); known || err != nil {
			return "ok", err
		}
		return heard(w.system.Questions.Answers.AnswerSaid(w.Context(), p.run, values, m, "operator", claybot.ViaHTTP))
	}, func() string {
		reply, _ := p.answer(values, "operator", claybot.ViaHTTP)
		return reply
	})
}

// decides is /approve or /deny by the run's person or by bob, which is about the
// only approval that waits for him, whose run it may be.
func (w *world) decides(p *person) {
	by := some(w, p.Descriptor, bob)
	m := command(w.id("decide"), some(w, "approve", "deny"))
	m.From = claybot.Sender{UserID: by.UserID}
	var about *person
	var open []claybot.Question
	for _, p := range w.people {
		for _, q := range p.asked {
			if q.Type == claybot.QuestionConfirm && p.open(q) && p.may(q, by.OwnerID()) {
				about, open = p, append(open, q)
			}
		}
	}
	w.do(p, fmt.Sprintf("%s of %s", m.Command, by.UserID), func() (string, error) {
		if err := w.system.Post(w.Context(), by, m); err != nil {
			return "", err
		}
		synctest.Wait()
		text := ""
		for _, o := range w.receipt(m.ID).Replies {
			text += o.Text
		}
		return strings.Fields(text + " -")[0], nil
	}, func() string {
		switch len(open) {
		case 0:
			return "Nothing"
		case 1:
			about.answer(map[string]string{open[0].Key: m.Command}, by.OwnerID(), claybot.ViaText)
			return map[string]string{"approve": "Approved.", "deny": "Denied."}[m.Command]
		}
		return "Several"
	})
	if about != nil {
		w.check(about)
	}
}

// ends is a command that ends the run.
func (w *world) ends(p *person, m claybot.AgentMessage, by string) {
	m.From = claybot.Sender{UserID: p.UserID}
	w.do(p, string(m.Type), func() (string, error) {
		return by, w.system.Post(w.Context(), p.Descriptor, m)
	}, func() string {
		for i, t := range p.typed {
			switch {
			case t.reply != "later":
			case p.waits() && by == "reset":
				p.typed[i].reply = "reset"
			default: // it runs now, or did before
				p.typed[i].reply = "ran"
			}
		}
		if p.waits() {
			p.gone, p.by = true, by
		}
		return by
	})
}

// nonsense is what names nothing.
func (w *world) nonsense(p *person) {
	ctx := w.Context()
	for got, err := range map[string]error{
		"no such question": w.system.Questions.Answers.AnswerQuestion(ctx, "none", claybot.Answer{Text: "yes", By: "operator", Via: claybot.ViaHTTP}),
		"no such run":      w.system.Questions.Answers.AnswerRun(ctx, "none", map[string]string{"k0": "yes"}, "operator", claybot.ViaHTTP, true),
	} {
		if reply, err := heard(err); reply != "not his" || err != nil {
			w.differs("%s: %q, %v", got, reply, err)
		}
	}
	want := "unfit"
	if !p.waits() {
		want = "closed"
	}
	for _, values := range []map[string]string{nil, {"nothing": "yes"}, {p.asked[0].Key: "yes", "nothing": "yes"}} {
		if reply, err := heard(w.system.Questions.Answers.AnswerRun(ctx, p.run, values, "operator", claybot.ViaHTTP, true)); reply != want || err != nil {
			w.differs("%v: %q, %v; want %s", values, reply, err, want)
		}
	}
	w.check(p)
}

// nextExpiry is when the next question expires, 0 for never.
func (w *world) nextExpiry() (next claybot.Time) {
	for _, p := range w.people {
		for _, q := range p.asked {
			if p.open(q) && (next == 0 || q.Expires < next) {
				next = q.Expires
			}
		}
	}
	return next
}

// steady lets time pass where a question would expire while something is done,
// or the process is dead.
func (w *world) steady() {
	for next := w.nextExpiry(); next != 0 && time.Until(next.Time()) < 3*time.Minute; next = w.nextExpiry() {
		w.passes(3 * time.Minute)
	}
}

// passes is that time passes, with a look two seconds behind each expiry. The
// process may die there.
func (w *world) passes(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		next := w.nextExpiry()
		if next == 0 || next.Time().After(end) {
			time.Sleep(time.Until(end))
			break
		}
		crash := 0
		if w.chance(5) {
			crash = 1 + w.pick(12)
		}
		w.does("until %s", next.Time().UTC().Format(time.TimeOnly))
		w.fuse.blowIn(crash)
		time.Sleep(time.Until(next.Time()) + 2*time.Second)
		synctest.Wait()
		w.fuse.blowIn(0)
		if w.fuse.dead() {
			w.crashes++
			w.dies()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		for _, p := range w.people {
			p.tick()
		}
		w.checkAll()
	}
}

// check compares a run with the rules.
func (w *world) check(p *person) {
	run, err := w.db.Run(w.Context(), p.run)
	if err != nil {
		w.Fatal(err)
	}
	state := claybot.RunSucceeded
	switch {
	case p.waits():
		state = claybot.RunAwaiting
	case p.gone:
		state = claybot.RunCanceled
	}
	if run.State != state || run.Cancel != p.by {
		w.differs("the run of %s is %s (by %q), want %s (by %q)", p.UserID, run.State, run.Cancel, state, p.by)
	}
	open, err := w.system.Questions.Answers.OpenQuestions(w.Context(), run.Agent)
	if err != nil {
		w.Fatal(err)
	}
	for _, q := range p.asked {
		is := slices.ContainsFunc(open, func(o storage.OpenQuestion) bool { return o.ID == q.ID })
		if want := p.waits() && p.said[q.ID].Via == ""; is != want {
			w.differs("that %s of %s is open is %v, want %v", q.Key, p.UserID, is, want)
		}
		got, err := w.system.Questions.Answers.Question(w.Context(), q.ID)
		if err != nil {
			w.Fatal(err)
		}
		var a claybot.Answer
		if got.Answer != nil && len(got.Answer.Value) > 0 { // else it is noted that no answer came
			a = *got.Answer
		}
		if want := p.said[q.ID]; string(a.Value) != string(want.Value) || a.Via != want.Via || a.By != want.By {
			w.differs("the answer to %s of %s is %s by %q via %q, want %s by %q via %q", q.Key, p.UserID, a.Value, a.By, a.Via, want.Value, want.By, want.Via)
		}
	}
}

func (w *world) checkAll() {
	synctest.Wait()
	for _, p := range w.people {
		w.check(p)
	}
}

// finish waits until nothing is open any more, and looks at the whole.
func (w *world) finish() {
	for w.nextExpiry() != 0 {
		w.passes(2 * time.Hour)
	}
	time.Sleep(time.Minute)
	w.checkAll()
	want := make(map[string]int)
	for _, p := range w.people {
		for _, q := range p.asked {
			if p.may(q, p.own) {
				want[q.ID+" in "+p.ChannelID] = 1
			}
			if slices.Contains(q.Approvers, "chat/bob") {
				want[q.ID+" in "+bob.ChannelID] = 1
			}
		}
		w.finished(p)
	}
	if got := w.shown(); !maps.Equal(got, want) {
		w.differs("shown are %v, want %v", got, want)
	}
}

// finished compares what a run was told, and what became of the other texts.
func (w *world) finished(p *person) {
	told := toldText(p.asked, func(i int) claybot.Answer { return p.said[p.asked[i].ID] })
	n := 0
	for _, r := range w.records(p.Descriptor) {
		if r.Run == p.run && r.Type == claybot.RecordAssistant {
			n++
			if r.Text != told {
				w.differs("the run of %s is told %q, want %q", p.UserID, r.Text, told)
			}
		}
	}
	afresh := slices.ContainsFunc(p.typed, func(t typedText) bool { return t.reply == "reset" }) || w.wasReset(p)
	if want := map[bool]int{true: 1}[!p.gone]; n != want && !(afresh && n == 0) {
		w.differs("the run of %s says %d times what it was told, want %d", p.UserID, n, want)
	}
	for _, t := range p.typed {
		want := t.reply
		if want == "later" { // the run that it waited for has ended
			want = "ran"
		}
		if got := w.fate(t.message.ID); got != want {
			w.differs("the text %q of %s: %s, want %s", t.message.Text, p.UserID, got, want)
		}
	}
	w.checkEvents(p.Descriptor)
}

// wasReset reports whether a person began afresh, so that his history begins
// behind the run.
func (w *world) wasReset(p *person) bool {
	h := w.records(p.Descriptor)
	return len(h) == 0 || h[0].Run != p.run
}

// shown is how often a question was put into a chat. It must be marked there
// once it is closed.
func (w *world) shown() map[string]int {
	w.chat.mu.Lock()
	defer w.chat.mu.Unlock()
	all := make(map[string]int)
	for _, p := range w.chat.posts {
		if p.out.Question == nil {
			continue
		}
		all[p.out.Question.ID+" in "+p.out.Route.ChannelID]++
		if p.edits == 0 || w.crashes == 0 && p.edits > 1 {
			w.differs("the message that asks %q was edited %d times: %q", p.out.Question.Text, p.edits, p.text)
		}
	}
	return all
}
