package storagetest

import (
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// remind posts what is due, each as a message with the id of its reminder.
func (b *bed) remind() (posted int, next claybot.Time) {
	b.Helper()
	posted, next, err := b.Remind(b.ctx, claybot.Now(), func(r storage.Reminder) (storage.Posting, error) {
		m := note("reminder/"+r.ID, claybot.KindReminder)
		m.Text, m.Context, m.Route = r.Note, r.Context, r.Route
		return storage.Posting{Message: m}, nil
	})
	b.noError(err)
	return posted, next
}

func (b *bed) reminder(id string, in time.Duration) storage.Reminder {
	return storage.Reminder{ID: id, Agent: b.agent, Due: claybot.At(time.Now().Add(in)), Note: "note " + id, Made: claybot.Now()}
}

var reminderTests = []storeTest{
	{"many of a faulty agent hold up no other's", func(b *bed) {
		other := b.newAgent("C2")
		for i := range 120 {
			b.noError(b.AddReminder(b.ctx, b.reminder(fmt.Sprint("a", i), -time.Minute), 1000))
		}
		mine := b.reminder("b", -time.Second)
		mine.Agent = other
		b.noError(b.AddReminder(b.ctx, mine, 1000))
		tries := 0
		posted, _, err := b.Remind(b.ctx, claybot.Now(), func(r storage.Reminder) (storage.Posting, error) {
			if r.Agent == b.agent {
				tries++
				return storage.Posting{}, storage.ErrDamaged
			}
			return storage.Posting{Message: note("reminder/"+r.ID, claybot.KindReminder)}, nil
		})
		b.is(err, storage.ErrDamaged)
		b.equal("posted, tries", []int{posted, tries}, []int{1, 10})
		b.equal("kept", len(ok(b.Reminders(b.ctx, b.agent))(b)), 120)
	}},
	{"kept, listed, canceled", func(b *bed) {
		full := b.reminder("a", time.Hour)
		full.Context = claybot.MessageContext{ThreadID: "T", Quote: "q", Group: true}
		full.Route = &claybot.Route{Connector: "slack", ChannelID: "C"}
		early := b.reminder("b", time.Minute)
		for _, r := range []storage.Reminder{full, early} {
			b.noError(b.AddReminder(b.ctx, r, 2))
		}
		again := early
		again.Note = "other"
		b.noError(b.AddReminder(b.ctx, again, 2)) // known, also at the limit
		b.is(b.AddReminder(b.ctx, b.reminder("c", 1), 2), storage.ErrTooMany)
		b.is(b.AddReminder(b.ctx, b.reminder("c", 1), 0), storage.ErrTooMany)
		if err := b.AddReminder(b.ctx, b.reminder("", 1), 9); err == nil {
			b.Fatal("a reminder without an id was kept")
		}
		stray := b.reminder("d", 1)
		stray.Agent = "gone"
		b.is(b.AddReminder(b.ctx, stray, 9), storage.ErrNotFound)
		b.again()
		b.equal("the next one first", ok(b.Reminders(b.ctx, b.agent))(b), []storage.Reminder{early, full})
		b.is(b.CancelReminder(b.ctx, "other", "a"), storage.ErrNotFound)
		b.noError(b.CancelReminder(b.ctx, b.agent, "b"))
		b.is(b.CancelReminder(b.ctx, b.agent, "b"), storage.ErrNotFound)
		b.equal("left", ok(b.Reminders(b.ctx, b.agent))(b), []storage.Reminder{full})
		mine := b.agent
		b.agent = b.newAgent("C2")
		b.noError(b.AddReminder(b.ctx, b.reminder("a", time.Second), 2)) // ids are the agent's own
		of := func(limit int) (list []string) {
			for _, r := range ok(b.NextReminders(b.ctx, limit))(b) {
				list = append(list, string(r.Agent)+" "+r.ID)
			}
			return list
		}
		b.equal("of all", of(9), []string{string(b.agent) + " a", string(mine) + " a"})
		b.equal("the next of all", of(1), []string{string(b.agent) + " a"})
		b.equal("of each", []int{len(ok(b.Reminders(b.ctx, b.agent))(b)), len(ok(b.Reminders(b.ctx, mine))(b))}, []int{1, 1})
	}},
	{"posted when due", func(b *bed) {
		posted, next := b.remind()
		b.equal("nothing", []any{posted, next}, []any{0, claybot.Time(0)})
		full := b.reminder("1", time.Minute)
		full.Context.ThreadID, full.Route = "T", &claybot.Route{Connector: "slack", ChannelID: "C"}
		b.noError(b.AddReminder(b.ctx, full, 9))
		b.noError(b.AddReminder(b.ctx, b.reminder("2", time.Hour), 9))
		posted, next = b.remind()
		b.equal("early", []any{posted, next}, []any{0, full.Due})
		b.neverDue("early")
		time.Sleep(time.Minute)
		posted, next = b.remind()
		b.equal("due", []any{posted, next}, []any{1, full.Due + claybot.Time((59 * time.Minute).Milliseconds())})
		posted, _ = b.remind()
		b.equal("once", posted, 0)
		h := b.hold(nodeOne)
		m := h.Waiting[0]
		b.equal("message", []any{m.ID, m.Text, m.Context.ThreadID, *m.Route}, []any{"reminder/1", "note 1", "T", *full.Route})
		b.equal("left", len(ok(b.Reminders(b.ctx, b.agent))(b)), 1)
		// A set of the same id after it was posted finds a known message.
		b.noError(b.AddReminder(b.ctx, full, 9))
		posted, _ = b.remind()
		b.equal("a repeat is not a second message", []any{posted, len(ok(b.Reminders(b.ctx, b.agent))(b))}, []any{0, 1})
	}},
	{"many", func(b *bed) {
		for i := range 250 {
			b.noError(b.AddReminder(b.ctx, b.reminder(fmt.Sprintf("%03d", i), ms), 1000))
		}
		time.Sleep(ms)
		for _, want := range []int{100, 100, 50} {
			posted, next := b.remind()
			b.equal("posted", []any{posted, next != 0 && next <= claybot.Now()}, []any{want, want == 100 && next != 0})
		}
		h, _, err := b.Acquire(b.ctx, nodeOne, ttl, 1, 1000)
		b.noError(err)
		b.equal("in order", []any{len(h[0].Waiting), h[0].Waiting[0].ID, h[0].Waiting[249].ID}, []any{250, "reminder/000", "reminder/249"})
	}},
	{"one that cannot be posted holds up no other", func(b *bed) {
		b.noError(b.AddReminder(b.ctx, b.reminder("1", 0), 9))
		b.noError(b.AddReminder(b.ctx, b.reminder("2", 0), 9))
		posted, next, err := b.Remind(b.ctx, claybot.Now(), func(r storage.Reminder) (storage.Posting, error) {
			m := note("reminder/"+r.ID, claybot.KindReminder)
			if r.ID == "1" {
				m.ID = ""
			}
			return storage.Posting{Message: m}, nil
		})
		if posted != 1 || err == nil || next == 0 {
			b.Fatalf("posted %d, next %d, %v", posted, next, err)
		}
		posted, next = b.remind()
		b.equal("tried again", []any{posted, next}, []any{1, claybot.Time(0)})
	}},
}
