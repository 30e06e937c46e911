package runs_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// A watching is a Watch in a goroutine of its own; told says what it was told
// and when.
type watching struct {
	told []string
	done chan struct{}
	gate chan struct{} // nil: open
}

func (r *rig) watch(ctx context.Context, id claybot.RunID, after int64, gate chan struct{}) *watching {
	w := &watching{done: make(chan struct{}), gate: gate}
	start := time.Now()
	go func() {
		defer close(w.done)
		for u, err := range runs.Watch(ctx, r.db, r.hub, id, after) {
			at := time.Since(start).Milliseconds()
			switch {
			case err != nil:
				w.told = append(w.told, err.Error())
			case u.Event != nil:
				w.told = append(w.told, fmt.Sprintf("%d %s %d", at, u.Event.Type, u.Event.Seq))
			default:
				d := u.Delta
				w.told = append(w.told, fmt.Sprintf("%d %s/%d.%d@%d %q", at, d.Node, d.Step, d.Attempt, d.Offset, d.Text))
				if d.Run != id {
					w.told = append(w.told, "another run")
				}
			}
			if w.gate != nil {
				<-w.gate
			}
		}
	}()
	return w
}

func (w *watching) check(t *testing.T, want ...string) {
	t.Helper()
	<-w.done
	if !reflect.DeepEqual(w.told, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(w.told, "\n"), strings.Join(want, "\n"))
	}
}

func TestDeltas(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		grow := func(step int, text string) {
			r.hub.Grow(l.id, "model", step, text)
			synctest.Wait()
		}
		first := r.watch(t.Context(), l.id, 0, nil)
		synctest.Wait()
		grow(1, "")
		grow(1, "H")
		time.Sleep(10 * time.Millisecond)
		grow(1, "Hel")
		time.Sleep(10 * time.Millisecond)
		grow(1, "Hello")
		grow(1, "Hello") // no news
		middle := r.watch(t.Context(), l.id, 1, nil)
		time.Sleep(80 * time.Millisecond) // 100
		grow(1, "Hello you")
		time.Sleep(100 * time.Millisecond) // 200
		l.said(1, "Hello you there")
		synctest.Wait()
		grow(2, "Again")
		time.Sleep(100 * time.Millisecond) // 300
		grow(2, "An")                      // another try
		time.Sleep(100 * time.Millisecond) // 400
		grow(2, "")                        // and another, that has nothing yet
		time.Sleep(100 * time.Millisecond) // 500
		grow(2, "An end")
		time.Sleep(100 * time.Millisecond) // 600
		l.finish()
		first.check(t,
			"0 RunStarted 1",
			`0 model/1.1@0 "H"`,
			`50 model/1.1@1 "ello"`,
			`100 model/1.1@5 " you"`,
			"200 AssistantMessage 2",
			`200 model/2.1@0 "Again"`,
			`300 model/2.2@0 "An"`,
			`400 model/2.3@0 ""`,
			`500 model/2.3@0 "An end"`,
			"600 RunFinished 3",
		)
		middle.check(t,
			`0 model/1.1@0 "Hello"`,
			`80 model/1.1@5 " you"`,
			"180 AssistantMessage 2",
			`180 model/2.1@0 "Again"`,
			`280 model/2.2@0 "An"`,
			`380 model/2.3@0 ""`,
			`480 model/2.3@0 "An end"`,
			"580 RunFinished 3",
		)
	})
}

// TestDeltasCollect grows a text in very many pieces.
func TestDeltasCollect(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		var text string
		got, pieces := "", 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for u, err := range runs.Watch(t.Context(), r.db, r.hub, l.id, 0) {
				switch {
				case err != nil:
					t.Error(err)
				case u.Delta != nil:
					if u.Delta.Offset != len(got) {
						t.Errorf("offset %d behind %d bytes", u.Delta.Offset, len(got))
					}
					got += u.Delta.Text
					pieces++
				}
			}
		}()
		synctest.Wait()
		for range 1000 {
			text += "word "
			r.hub.Grow(l.id, "model", 1, text)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if got != text {
			t.Errorf("got %d bytes of %d", len(got), len(text))
		}
		if pieces < 19 || pieces > 22 {
			t.Errorf("%d pieces in a second", pieces)
		}
		l.finish()
		<-done
	})
}

// TestDeltasAreNotKept has a reader that stands still while a step goes by.
func TestDeltasAreNotKept(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		gate := make(chan struct{})
		slow := r.watch(t.Context(), l.id, 0, gate)
		synctest.Wait()
		r.hub.Grow(l.id, "model", 1, "One")
		gate <- struct{}{}
		synctest.Wait()
		r.hub.Grow(l.id, "model", 1, "One, two")
		l.said(1, "One, two, three")
		r.hub.Grow(l.id, "model", 2, "Four")
		r.hub.Grow(l.id, "model", 2, "Four, five")
		time.Sleep(time.Second)
		close(gate)
		synctest.Wait()
		l.finish()
		slow.check(t,
			"0 RunStarted 1",
			`0 model/1.1@0 "One"`,
			"1000 AssistantMessage 2",
			`1000 model/2.1@0 "Four, five"`,
			"1000 RunFinished 3",
		)
	})
}

// TestTextsOfSeveralNodes keeps them apart.
func TestTextsOfSeveralNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		r.hub.Grow(l.id, "left", 1, "a")
		r.hub.Grow(l.id, "right", 2, "b")
		w := r.watch(t.Context(), l.id, 1, nil) // not before: it would have to wait with the second one
		synctest.Wait()
		time.Sleep(50 * time.Millisecond)
		l.said(1, "a")
		synctest.Wait()
		r.hub.Grow(l.id, "right", 2, "bc")
		time.Sleep(50 * time.Millisecond)
		l.finish()
		w.check(t, `0 left/1.1@0 "a"`, `0 right/2.1@0 "b"`, "50 AssistantMessage 2", `50 right/2.1@1 "c"`, "100 RunFinished 3")
	})
}

// TestTextEnds shows no old text after what ends it: the answer, a pause, the
// end.
func TestTextEnds(t *testing.T) {
	for name, end := range map[string]func(l *live){
		"answer": func(l *live) { l.said(1, "Hello") },
		"pause": func(l *live) {
			a := claybot.Awaiting{Reason: claybot.AwaitInfo, Answers: []claybot.MessageID{"answer/q"}, Until: claybot.At(time.Now().Add(time.Hour))}
			l.must(l.db.Suspend(l.t.Context(), l.lease, l.id, pause(l.id, a)))
			l.seq++
		},
		"end": func(l *live) { l.finish() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				l := r.start()
				r.hub.Grow(l.id, "model", 1, "Hel")
				end(l)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				w := r.watch(ctx, l.id, l.seq-1, nil)
				<-w.done
				for _, told := range w.told {
					if strings.Contains(told, "Hel") {
						t.Errorf("told of %s", told)
					}
				}
				if len(w.told) == 0 {
					t.Error("told nothing at all")
				}
			})
		})
	}
}

// TestTailHasNoDeltas is about readers of events alone.
func TestTailHasNoDeltas(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := r.start()
		tl := r.tail(t.Context(), l.id, 0)
		synctest.Wait()
		r.hub.Grow(l.id, "model", 1, "Hel")
		synctest.Wait()
		l.finish()
		tl.check(t, span(1, 2))
	})
}
