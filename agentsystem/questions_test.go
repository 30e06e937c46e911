package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

const (
	colour = "**Which colour?**\n\n1. red\n2. green\n3. blue\n\n*Answer with one of these or its number. Expires on Sunday, 2 January at 0:00 UTC.*"
	again  = "\n\nPlease try again. If your next message isn't a valid answer either, I'll drop the question and work on that message instead."
)

// colourSaid is what stands in the place of the question once it was answered in
// the chat.
func colourSaid(what string) string {
	return "**Which colour?**\n\n" + what + " *(answered in the chat)*"
}

// The texts shown when no answer came.
const (
	colourGone = "**Which colour?**\n\n*(no longer needs an answer)*"
	colourLate = "**Which colour?**\n\n*(no answer in time)*"
)

// askColour asks one question; fields are added to it.
func askColour(fields obj) llmtest.Reply {
	q := obj{"question": "Which colour?", "options": []string{"red", "green", "blue"}, "key": "colour"}
	for k, v := range fields {
		q[k] = v
	}
	return llmtest.Use(with("ask_user", q))
}

// askThree asks three at once.
func askThree() llmtest.Reply {
	return llmtest.Use(with("ask_user", obj{"questions": []obj{
		{"question": "How many?", "type": "number", "key": "count", "min": 1},
		{"question": "For whom?", "type": "email", "key": "who"},
		{"question": "Anything else?", "key": "note", "type": "textarea"},
	}}))
}

// asking starts a run that asks.
func (r *rig) asking(q llmtest.Reply) {
	r.mind.plan("begin", q, llmtest.Say("done"))
	r.start()
	r.say("begin")
	after(time.Second)
}

// told are the results of ask_user that the model has read.
func (r *rig) told() (results []string) {
	r.Helper()
	for _, rec := range r.records(ann) {
		if rec.Type == claybot.RecordTool && rec.Name == "ask_user" {
			results = append(results, rec.Text)
		}
	}
	return results
}

func (r *rig) wantTold(results ...string) {
	r.Helper()
	if got := r.told(); !slices.Equal(got, results) {
		r.Errorf("the model is told %q, want %q", got, results)
	}
}

func (r *rig) open() []storage.OpenQuestion {
	r.Helper()
	qs, err := r.system.Questions.Answers.OpenQuestions(r.Context(), r.agent(ann))
	if err != nil {
		r.Fatal(err)
	}
	return qs
}

// state is the state of the run that took a message.
func (r *rig) state(id claybot.MessageID) claybot.RunState {
	r.Helper()
	run := r.receipt(id).Run
	if run == nil {
		return ""
	}
	return run.State
}

func count(all []claybot.Record, t claybot.RecordType) (n int) {
	for _, r := range all {
		if r.Type == t {
			n++
		}
	}
	return n
}

func TestTypedAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.asking(askColour(nil))
		r.wants(colour)
		qs := r.open()
		if len(qs) != 1 || qs[0].Key != "colour" || qs[0].Run != r.ranID("begin") || qs[0].ToolCallID == "" || r.state("begin") != claybot.RunAwaiting {
			t.Fatalf("open are %+v, the run is %s", qs, r.state("begin"))
		}
		r.say("2")
		r.wants(colourSaid("green"), "done")
		r.wantTold(`{"colour":"green"}`)
		got, err := r.system.Questions.Answers.Question(r.Context(), qs[0].ID)
		if err != nil || got.Answer == nil || string(got.Answer.Value) != `"green"` || got.Answer.Via != claybot.ViaText || got.Answer.By != "chat/ann" {
			t.Errorf("the question is %+v, %v", got.Answer, err)
		}
		if len(r.open()) != 0 || r.receipt("2").Skipped != "answer" {
			t.Errorf("open are %v, the text was %q", r.open(), r.receipt("2").Skipped)
		}
		records := r.records(ann)
		if count(records, claybot.RecordQuestion) != 1 || count(records, claybot.RecordAnswer) != 1 || count(records, claybot.RecordUser) != 1 {
			t.Errorf("history is %q", r.history(ann))
		}
		r.post(ann, msg("2", "2")) // delivered again
		r.wants(colourSaid("green"), "done")
		r.say("thanks")
		r.wants(colourSaid("green"), "done", "re: thanks")
		r.checkEvents(ann)
	})
}

// A number is read as the language of its person writes it; one that can be read in two ways is
// asked again.
func TestTypedNumber(t *testing.T) {
	t.Parallel()
	for language, tt := range map[string]struct{ vague, fault, said string }{
		"en": {"1,234", "That can be read as 1234 or as 1.234.", "1,234.5"},
		"de": {"1.234", "Das kann als 1234 oder als 1,234 gelesen werden.", "1.234,5"},
	} {
		t.Run(language, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.asking(llmtest.Use(with("ask_user", obj{"question": "?", "key": "n", "type": "number"})))
				m := command("language", "language")
				m.Text = language
				r.post(ann, m)
				r.say(tt.vague)
				synctest.Wait()
				all := r.chat.sent()
				if last := all[len(all)-1].out.Text; !strings.HasPrefix(last, tt.fault) {
					t.Errorf("said %q", last)
				}
				r.say(tt.said)
				synctest.Wait()
				r.wantTold(`{"n":1234.5}`)
			})
		})
	}
}

// What was asked is there after restarts, and the person is asked once.
func TestQuestionSurvivesRestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.asking(askColour(nil))
		for range 2 {
			r.crash()
			r.start()
			after(5 * time.Minute)
			r.restart()
			after(time.Minute)
		}
		r.wants(colour)
		r.say("Blue.")
		after(time.Minute)
		r.wants(colourSaid("blue"), "done")
		r.wantTold(`{"colour":"blue"}`)
		r.checkEvents(ann)
	})
}

func TestUnfitAnswer(t *testing.T) {
	t.Parallel()
	wrong := `“purple” is not among the answers; please choose one of: red, green, blue.` + again
	bubble(t, func(r *rig) {
		r.asking(askColour(nil))
		r.say("purple")
		r.wants(colour, wrong)
		r.post(ann, msg("purple", "purple")) // delivered again
		r.wants(colour, wrong)
		if got := r.receipt("purple"); got.Skipped != "unfit" || r.state("begin") != claybot.RunAwaiting {
			t.Errorf("the text was %q, the run is %s", got.Skipped, r.state("begin"))
		}
		r.say("how are you?")
		r.wants(colourGone, wrong, "re: how are you?")
		r.post(ann, msg("how are you?", "how are you?"))
		r.wants(colourGone, wrong, "re: how are you?")
		if run := r.receipt("begin").Run; run.State != claybot.RunCanceled || run.Cancel != "message" {
			t.Errorf("the run is %+v", run)
		}
		if len(r.told()) != 0 || len(r.open()) != 0 {
			t.Errorf("told %q, open %v", r.told(), r.open())
		}
		r.checkEvents(ann)
	})
	bubble(t, func(r *rig) { // the second one fits
		r.asking(askColour(nil))
		r.say("purple", "red")
		r.wants(colourSaid("red"), wrong, "done")
		r.wantTold(`{"colour":"red"}`)
	})
	bubble(t, func(r *rig) { // an unreadable text is not an answer
		r.asking(askColour(nil))
		r.post(ann, msg("blank", " \n"))
		r.wants(colour, "Your message has no text that I can read.")
		r.say("red")
		r.wants(colourSaid("red"), "Your message has no text that I can read.", "done")
	})
}

// threeSaid is what stands in the places of three questions in the end.
var threeSaid = [3]string{
	"**How many?**\n\n3 *(answered in the chat)*",
	"**For whom?**\n\nbob@example.org *(answered in the chat)*",
	"**Anything else?**\n\nno hurry *(answered in the chat)*",
}

func TestSeveralQuestions(t *testing.T) {
	t.Parallel()
	all := `{"count":3,"who":"bob@example.org","note":"no\nhurry"}`
	bubble(t, func(r *rig) { // one by one
		r.asking(askThree())
		seen := r.chat.seen()
		if len(seen) != 3 || !strings.HasPrefix(seen[0], "I have 3 questions. Answer them one by one, or all at once with a line for each, such as `count: …`.\n\n`count` **How many?**") ||
			!strings.HasPrefix(seen[1], "`who` **For whom?**") {
			t.Errorf("people see %q", seen)
		}
		for i, p := range r.chat.posts {
			var keys []string
			for _, q := range p.out.Round {
				keys = append(keys, q.Key)
			}
			if all := strings.Join(keys, " "); i < 2 && all != "" || i == 2 && all != "count who note" {
				t.Errorf("message %d has the round %q", i, all)
			}
		}
		r.say("3")
		after(time.Second)
		r.say("BOB@example.org")
		after(time.Second)
		r.restart()
		r.say("no\nhurry")
		after(time.Second)
		copy(seen, threeSaid[:])
		want := append(seen, "Thank you. Next: **For whom?** Answer with an email address.", "Thank you. Next: **Anything else?** Answer with text.", "done")
		r.wants(want...)
		r.wantTold(all)
		r.checkEvents(ann)
	})
	bubble(t, func(r *rig) { // all at once, one of them wrong at first
		r.asking(askThree())
		seen := r.chat.seen()
		r.say("count: 0\nwho: bob@example.org")
		want := append(seen, "count: Please give a number that is at least 1."+again)
		r.wants(want...)
		if len(r.open()) != 3 {
			t.Errorf("open are %d", len(r.open()))
		}
		r.say("Who: bob@example.org\nnote: no\nhurry\n- count: 3")
		copy(want, threeSaid[:])
		r.wants(append(want, "done")...)
		r.wantTold(all)
	})
}

// A text that replies to one of several questions answers that one, whatever the others are.
func TestReplyToOneOfSeveralQuestions(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.asking(askThree())
		for i, text := range []string{"no hurry", "bob@example.org", "3"} {
			m := msg(text, text)
			m.Context.Answers = fmt.Sprint("p", 3-i)
			r.post(ann, m)
			after(time.Second)
		}
		r.wantTold(`{"count":3,"who":"bob@example.org","note":"no hurry"}`)
	})
}

func TestAnswerOverHTTP(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.asking(askColour(nil))
		id := r.open()[0].ID
		ctx := r.Context()
		var bad *questions.AnswerError
		if err := r.system.Questions.Answers.AnswerQuestion(ctx, id, claybot.Answer{Text: "purple", By: "operator", Via: claybot.ViaHTTP}); !errors.As(err, &bad) || !strings.Contains(bad.Faults["colour"], "not among") {
			t.Errorf("purple: %v", err)
		}
		if err := r.system.Questions.Answers.AnswerQuestion(ctx, "nothing", claybot.Answer{Text: "red", By: "operator", Via: claybot.ViaHTTP}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("no such question: %v", err)
		}
		if err := r.system.Questions.Answers.AnswerQuestion(ctx, id, claybot.Answer{Text: "red", By: "bob", Via: claybot.ViaButton}); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("another person in the chat: %v", err)
		}
		if err := r.system.Questions.Answers.AnswerQuestion(ctx, id, claybot.Answer{Text: "red", By: "operator", Via: claybot.ViaWeb}); err != nil {
			t.Fatal(err)
		}
		r.wants("**Which colour?**\n\nred *(answered on the page)*", "done")
		if err := r.system.Questions.Answers.AnswerQuestion(ctx, id, claybot.Answer{Text: "blue", By: "operator", Via: claybot.ViaWeb}); !errors.Is(err, storage.ErrState) {
			t.Errorf("twice: %v", err)
		}
		r.wantTold(`{"colour":"red"}`)
		if p := r.chat.posts[0]; p.edits != 1 {
			t.Errorf("the question was edited %d times", p.edits)
		}
		r.checkEvents(ann)
	})
}

func TestAnswerRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.asking(askThree())
		run, ctx := r.ranID("begin"), r.Context()
		ids := make(map[string]string)
		for _, q := range r.open() {
			ids[q.Key] = q.ID
		}
		tests := []struct {
			values map[string]string
			faults []string
		}{
			{nil, []string{"answers"}},
			{map[string]string{"count": "many", "who": "bob", "note": "ok"}, []string{"count", "who"}},
			{map[string]string{ids["who"]: "bob", "note": "ok"}, []string{ids["who"]}},
			{map[string]string{"count": "2", "colour": "red"}, []string{"colour"}},
		}
		for _, tt := range tests {
			var bad *questions.AnswerError
			err := r.system.Questions.Answers.AnswerRun(ctx, run, tt.values, "operator", claybot.ViaHTTP, true)
			if !errors.As(err, &bad) || len(bad.Faults) != len(tt.faults) {
				t.Errorf("%v: %v", tt.values, err)
				continue
			}
			for _, f := range tt.faults {
				if bad.Faults[f] == "" {
					t.Errorf("%v: no fault of %s in %v", tt.values, f, bad.Faults)
				}
			}
		}
		if len(r.open()) != 3 {
			t.Fatalf("open are %d", len(r.open()))
		}
		if err := r.system.Questions.Answers.AnswerRun(ctx, run, map[string]string{"Count": "2", ids["who"]: "a@b.org"}, "operator", claybot.ViaHTTP, true); err != nil {
			t.Fatal(err)
		}
		if err := r.system.Questions.Answers.AnswerRun(ctx, run, map[string]string{"count": "3"}, "operator", claybot.ViaHTTP, true); !errors.Is(err, storage.ErrState) {
			t.Errorf("again: %v", err)
		}
		if err := r.system.Questions.Answers.AnswerRun(ctx, run, map[string]string{"note": "x"}, "operator", claybot.ViaHTTP, true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.wantTold(`{"count":2,"who":"a@b.org","note":"x"}`)
		if err := r.system.Questions.Answers.AnswerRun(ctx, run, map[string]string{"note": "x"}, "operator", claybot.ViaHTTP, true); !errors.Is(err, storage.ErrState) {
			t.Errorf("ended: %v", err)
		}
		if err := r.system.Questions.Answers.AnswerRun(ctx, "nothing", map[string]string{"note": "x"}, "operator", claybot.ViaHTTP, true); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("no such run: %v", err)
		}
	})
}

func TestExpiredQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) { // with a default
		r.asking(askColour(obj{"default": "green", "expiresIn": "20m"}))
		asked := strings.Replace(colour, "number. Expires on Sunday, 2 January at 0:00", "number. Default: green. Expires today at 0:20", 1)
		r.wants(asked)
		after(10 * time.Minute)
		r.crash()
		r.start()
		after(9 * time.Minute)
		r.wants(asked)
		after(2 * time.Minute)
		r.wants("**Which colour?**\n\ngreen *(no answer in time)*", "done")
		r.wantTold("{\"colour\":\"green\"}\n(no answer in time; this is the default: colour)")
		r.checkEvents(ann)
	})
	bubble(t, func(r *rig) { // without one
		r.asking(askColour(obj{"expiresIn": "10m"}))
		id := r.open()[0].ID
		after(10 * time.Minute)
		r.wants(colourLate, "I stopped waiting because I got no answer: Which colour?")
		if run := r.receipt("begin").Run; run.State != claybot.RunCanceled || run.Cancel != "" {
			t.Errorf("the run is %+v", run)
		}
		if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), id, claybot.Answer{Text: "red", By: "operator", Via: claybot.ViaWeb}); !errors.Is(err, storage.ErrState) {
			t.Errorf("too late: %v", err)
		}
		r.say("red")
		r.wants(colourLate, "I stopped waiting because I got no answer: Which colour?", "re: red")
		r.checkEvents(ann)
	})
	bubble(t, func(r *rig) { // each in its time
		r.asking(llmtest.Use(with("ask_user", obj{"questions": []obj{
			{"question": "How many?", "type": "number", "expiresIn": "10m", "default": "1"},
			{"question": "For whom?", "type": "email"},
		}})))
		after(12 * time.Minute)
		if qs := r.open(); len(qs) != 1 || qs[0].Key != "q2" {
			t.Errorf("open are %+v", qs)
		}
		r.say("a@b.org")
		after(time.Second)
		r.wantTold("{\"q1\":1,\"q2\":\"a@b.org\"}\n(no answer in time; this is the default: q1)")
		r.checkEvents(ann)
	})
}

func TestStopAndResetWhileAsking(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    claybot.AgentMessage
		says string
	}{
		{typed("s", claybot.MessageCancel, ""), "Stopped."},
		{typed("s", claybot.MessageReset, ""), "Done. I have forgotten our conversation; your next message starts a new one."},
	} {
		bubble(t, func(r *rig) {
			r.asking(askColour(nil))
			id := r.open()[0].ID
			r.post(ann, tt.m)
			r.wants(colourGone, tt.says)
			if r.state("begin") != claybot.RunCanceled || len(r.open()) != 0 {
				t.Errorf("the run is %s, open are %v", r.state("begin"), r.open())
			}
			if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), id, claybot.Answer{Text: "red", By: "operator", Via: claybot.ViaWeb}); !errors.Is(err, storage.ErrState) {
				t.Errorf("an answer to a stopped run: %v", err)
			}
			r.say("red")
			r.wants(colourGone, tt.says, "re: red")
		})
	}
	bubble(t, func(r *rig) { // other commands leave it alone
		r.asking(askColour(nil))
		r.post(ann, command("st", "status"))
		synctest.Wait()
		if seen := r.chat.seen(); !strings.HasPrefix(seen[1], "I am waiting for your answer to: Which colour?\n/stop ends it.") {
			t.Errorf("people see %q", seen)
		}
		r.say("red")
		synctest.Wait()
		r.wantTold(`{"colour":"red"}`)
		r.post(ann, command("w", "why"))
		synctest.Wait()
		if seen := r.chat.seen(); !strings.Contains(seen[len(seen)-1], "answered a question of mine.") {
			t.Errorf("people see %q", seen)
		}
	})
}

// The tool is refused where no person reads along, and for questions that no person
// could answer.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("", "helper"), llmtest.Say("done"))
		r.mind.plan("helper", askColour(nil), llmtest.Say("so be it"))
		r.start()
		r.say("begin")
		r.wants("done")
		var got string
		for _, req := range r.mind.asked() {
			if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleTool && strings.Contains(last.Content, "no person") {
				got = last.Content
			}
		}
		if !strings.HasPrefix(got, "error: no person reads along in this run") {
			t.Errorf("the helper is told %q", got)
		}
	})
	bubble(t, func(r *rig) {
		r.asking(askColour(obj{"type": "number"}))
		r.wants("done")
		r.wantTold("error: field options: only select and multiselect have options, not number")
	})
}

// Two answers at once: one counts, and its giver alone is believed.
func TestTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.asking(askColour(nil))
		id := r.open()[0].ID
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				errs <- r.system.Questions.Answers.AnswerQuestion(r.Context(), id, claybot.Answer{Text: "red", By: "operator", Via: claybot.ViaHTTP})
			}()
		}
		won := 0
		for range cap(errs) {
			switch err := <-errs; {
			case err == nil:
				won++
			case !errors.Is(err, storage.ErrState):
				t.Error(err)
			}
		}
		synctest.Wait()
		if won != 1 {
			t.Errorf("%d of them counted", won)
		}
		r.wantTold(`{"colour":"red"}`)
		r.checkEvents(ann)
	})
}

// What was streamed before the question stays above it, and the answer comes
// below.
func TestQuestionBehindADraft(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]func(*line) connectors.Connector{"a message": platforms[1].line, "a draft of the platform": (&drawer{texts: true}).line()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.line = line
				r.mind.pace = 5 * time.Second
				q := askColour(nil)
				q.Text = "Before I paint the fence, there is one thing that I have to know."
				r.mind.plan("begin", q, llmtest.Say("The fence is green now, and it will be dry in an hour or two."))
				r.start()
				r.say("begin")
				after(time.Minute)
				r.wants(q.Text, colour)
				r.say("green")
				after(time.Minute)
				r.wants(q.Text, colourSaid("green"), "The fence is green now, and it will be dry in an hour or two.")
			})
		})
	}
}

// A racing inbox lets something happen just before a typed answer is stored.
type racingInbox struct {
	agentsystem.Inbox
	before func()
}

func (i racingInbox) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	if p.Skip == "answer" {
		i.before()
	}
	return i.Inbox.Post(ctx, p)
}

// Who types an answer while another one is given hears that his does not count.
func TestTypedTooLate(t *testing.T) {
	t.Parallel()
	for other, want := range map[string][]string{
		"blue": {"**Which colour?**\n\nblue *(answered over HTTP)*", "Too late: this question has already been answered.", "done"},
		"red":  {"**Which colour?**\n\nred *(answered over HTTP)*", "done"},
	} {
		bubble(t, func(r *rig) {
			r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
				s.Inbox = racingInbox{s.Inbox, func() {
					if err := r.system.Questions.Answers.AnswerQuestion(r.Context(), r.open()[0].ID, claybot.Answer{Text: other, By: "operator", Via: claybot.ViaHTTP}); err != nil {
						r.Error(err)
					}
				}}
				return s
			}
			r.asking(askColour(nil))
			r.say("red")
			synctest.Wait()
			if seen := r.chat.seen(); len(seen) != len(want) || seen[0] != want[0] || !slices.Contains(seen, want[1]) || !slices.Contains(seen, "done") {
				t.Errorf("people see %q, want %q", seen, want)
			}
			r.wantTold(`{"colour":"` + other + `"}`)
			r.checkEvents(ann)
		})
	}
}

// A stumble is a store that cannot pause a run the first time.
type stumble struct {
	agentsystem.Runs
	fell *bool
}

func (f stumble) Suspend(ctx context.Context, l storage.Lease, id claybot.RunID, p storage.Pause) error {
	if !*f.fell {
		*f.fell = true
		return storage.ErrBusy
	}
	return f.Runs.Suspend(ctx, l, id, p)
}

// A growing answer of several messages above a question is said once, also when
// the run cannot be paused at first.
func TestLongDraftAboveAQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[1].line
		r.mind.pace = 5 * time.Second
		q := askColour(nil)
		q.Text = strings.Repeat("a", partLimit) + strings.Repeat("b", 50)
		r.mind.plan("begin", q, llmtest.Say("done"))
		fell := false
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Runs = stumble{s.Runs, &fell}
			return s
		}
		r.start()
		r.say("begin")
		after(5 * time.Minute)
		var starts []string
		for _, text := range r.chat.seen() {
			starts = append(starts, text[:1])
		}
		if !fell || strings.Join(starts, "") != "ab*" { // two parts, then the question
			r.Errorf("people see %q", r.chat.seen())
		}
	})
}
