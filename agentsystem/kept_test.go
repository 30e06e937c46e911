package agentsystem_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
)

// keepsOf lets ann, who is unknown, write a text in a thread of her direct chat.
func (r *rig) keepsOf(id, thread, text string) {
	r.Helper()
	m := msg(id, text)
	m.From = claybot.Sender{UserID: "ann"}
	m.Context.ThreadID, m.Context.MessageID = thread, id
	r.post(private("ann"), m)
	synctest.Wait()
}

// annCode returns the code that ann got last.
func (r *rig) annCode() string {
	r.Helper()
	for _, text := range r.chat.seen("ann") {
		if got := codeForm.FindStringSubmatch(text); got != nil {
			return got[1]
		}
	}
	r.Fatalf("ann gets no code: %q", r.chat.seen("ann"))
	return ""
}

// Where threads are conversations of their own, an unknown user has no more room for each.
func TestKeptTextsOfAllThreadsHaveOneBound(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.ownThreads = true
		r.bossAt()
		r.keepsOf("long", "t", strings.Repeat("x", 8<<10-3))
		for i := range 20 {
			r.keepsOf(fmt.Sprint(i), fmt.Sprint("thread ", i), "xx")
		}
		all, err := r.db.ParkedAgents(r.Context(), 100)
		if err != nil || len(all) != 2 {
			t.Errorf("kept in %d threads, want 2: %v", len(all), err)
		}
		asked := len(r.mind.asked())
		r.orders("press", "boss", "approve "+r.annCode())
		time.Sleep(time.Minute)
		if n := len(r.mind.asked()) - asked; n != 2 {
			t.Errorf("%d model calls after the approval, want 2", n)
		}
	})
}

// The deletion of a kept text names no thread on some platforms; only its sender can delete it.
func TestKeptTextInAThreadIsDeleted(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.ownThreads = true
		r.bossAt()
		r.keepsOf("1", "thread", "my secret")
		for i, user := range []string{"eve", "ann"} {
			d := typed(fmt.Sprint("d", i), claybot.MessageDelete, "")
			d.Amends, d.From = "1", claybot.Sender{UserID: user}
			r.post(private(user), d)
			synctest.Wait()
			if x := r.receipt("1"); (x.Skipped == "deleted") != (user == "ann") || (x.Message.Text == "") != (user == "ann") {
				t.Errorf("after the deletion by %s: %+v", user, x)
			}
		}
	})
}
