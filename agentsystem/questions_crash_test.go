package agentsystem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// A dialogue is what Ann does about a question, with what must be known in the
// end however often the process died.
type dialogue struct {
	name  string
	act   func(r *rig)
	seen  []string
	told  []string
	steps int // at least, of a life without a crash
}

const chosen = `{"colour":"green"}`

var dialogues = []dialogue{
	{"typed", func(r *rig) { r.source("begin", "2") }, []string{colourSaid("green"), "done"}, []string{chosen}, 12},
	{"typed, wrong at first", func(r *rig) { r.source("begin", "purple", "green") }, []string{
		colourSaid("green"), `“purple” is not among the answers; please choose one of: red, green, blue.` + again, "done",
	}, []string{chosen}, 14},
	{"wrong twice", func(r *rig) { r.source("begin", "purple", "hello") }, []string{
		colourGone, `“purple” is not among the answers; please choose one of: red, green, blue.` + again, "re: hello",
	}, nil, 15},
	{"on the page", func(r *rig) {
		r.source("begin")
		for !r.fuse.dead() {
			qs, err := r.system.Questions.Answers.OpenQuestions(r.Context(), r.agent(ann))
			if err == nil && len(qs) == 0 {
				break
			}
			if err == nil {
				_ = r.system.Questions.Answers.AnswerQuestion(r.Context(), qs[0].ID, claybot.Answer{Text: "green", By: "operator", Via: claybot.ViaWeb}) // the next look shows what came of it
			}
			time.Sleep(time.Second)
		}
		after(20 * time.Second)
	}, []string{"**Which colour?**\n\ngreen *(answered on the page)*", "done"}, []string{chosen}, 13},
	{"no answer", func(r *rig) { r.source("begin"); after(16 * time.Minute) }, []string{
		colourLate, "I stopped waiting because I got no answer: Which colour?",
	}, nil, 10},
}

// The process dies after every step in turn: the question is asked once, its
// answer counts once, and the run ends as it would have.
func TestCrashAroundAQuestion(t *testing.T) {
	for _, d := range dialogues {
		t.Run(d.name, func(t *testing.T) {
			steps := d.live(t, -1)
			if steps < d.steps {
				t.Fatalf("only %d steps: the test does not see them", steps)
			}
			every := 1
			if raced || testing.Short() {
				every = 2
			}
			for k := 0; k < steps; k += every {
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					t.Parallel()
					d.live(t, k)
				})
			}
		})
	}
}

// live plays a dialogue in a process that dies after k steps and in the one
// after it, and returns how many steps there were. What was not confirmed comes
// again, and so does some of what was.
func (d dialogue) live(t *testing.T, k int) (steps int) {
	bubble(t, func(r *rig) {
		r.line, r.blowAfter = platforms[0].line, k                        // a platform that can be asked
		r.mind.plan("begin", askColour(obj{"expiresIn": "15m"}), sayDone) // looking for work costs time, even virtual time
		r.start()
		d.act(r)
		steps = len(r.fuse.steps)
		if r.fuse.dead() {
			t.Logf("the process died behind %q", r.fuse.steps[max(0, len(r.fuse.steps)-3):])
			r.crash()
			r.start()
			d.act(r)
		}
		after(time.Minute)
		if got := r.chat.seen(); !slices.EqualFunc(got, d.seen, sameButTime) {
			t.Errorf("people see %q, want %q", got, d.seen)
		}
		if got := r.told(); !slices.Equal(got, d.told) {
			t.Errorf("the model is told %q, want %q", got, d.told)
		}
		records := r.records(ann)
		if count(records, claybot.RecordQuestion) != 1 || count(records, claybot.RecordAnswer) != len(d.told) {
			t.Errorf("history is %q", r.history(ann))
		}
		if n := len(r.open()); n != 0 {
			t.Errorf("%d questions are open", n)
		}
		r.checkEvents(ann)
	})
	return steps
}

// sayDone is how the run ends that was answered.
var sayDone = llmtest.Say("done")

// sameButTime compares what people see. A question that comes after a crash may
// be open for longer.
func sameButTime(got, want string) bool {
	cut := func(s string) string { s, _, _ = strings.Cut(s, "Expires"); return s }
	return cut(got) == cut(want)
}
