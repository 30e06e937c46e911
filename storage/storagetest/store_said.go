package storagetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// inGroup is a message of the group -1, whose time is in seconds from now.
func inGroup(thread, id, text string, after int) storage.SaidIn {
	at := claybot.At(time.Now().Add(time.Duration(after) * time.Second))
	return storage.SaidIn{
		Chat: storage.Chat{Connector: "telegram", Channel: "-1"}, Thread: thread, Said: claybot.Said{ID: id, UserID: "U1", Name: "Ann", At: at, Text: text},
	}
}

// heard are the texts of a thread.
func (b *bed) heard(channel, thread string) (all []string) {
	b.Helper()
	for _, m := range ok(b.SaidIn(b.ctx, storage.Chat{Connector: "telegram", Channel: channel}, thread))(b) {
		all = append(all, m.ID+" "+m.Text)
	}
	return all
}

var saidTests = []storeTest{
	{"what was said", func(b *bed) {
		edit := inGroup("", "9", "b, changed", 1)
		edit.Edit = true
		unknown := edit
		unknown.ID = "77"
		all := []storage.SaidIn{inGroup("", "8", "a", 1), inGroup("", "9", "b", 1), inGroup("", "10", "c", 1), inGroup("7", "11", "topic", 3)}
		for range 2 { // a repeat changes nothing
			b.noError(b.KeepSaid(b.ctx, 5, all...))
			b.noError(b.KeepSaid(b.ctx, 5, edit, unknown))
			b.again()
		}
		b.equal("in the order of their times", b.heard("-1", ""), []string{"8 a", "9 b, changed", "10 c"})
		b.equal("the topic", b.heard("-1", "7"), []string{"11 topic"})
		b.equal("another topic", b.heard("-1", "70"), []string(nil))
		b.equal("another group", b.heard("-10", ""), []string(nil))
		b.equal("whole", ok(b.SaidIn(b.ctx, inGroup("", "", "", 0).Chat, "7"))(b)[0].Name, "Ann")
	}},
	{"the newest of what was said", func(b *bed) {
		var want []string
		for i := range 30 {
			b.noError(b.KeepSaid(b.ctx, 10, inGroup("", fmt.Sprint(i), "m", i), inGroup("odd/é", fmt.Sprint(i), "t", i/20)))
			want = append(want, fmt.Sprint(i, " m"))
		}
		b.equal("bounded", b.heard("-1", ""), want[20:])
		b.equal("of the topic", len(b.heard("-1", "odd/é")), 10)
		late := inGroup("", "old", "old", -60)
		b.noError(b.KeepSaid(b.ctx, 10, late))
		b.equal("an old one comes too late", b.heard("-1", ""), want[20:])
	}},
	{"groups of which messages are kept", func(b *bed) {
		b.noError(b.SetCheckpoint(b.ctx, "saic", "x"))
		b.noError(b.SetCheckpoint(b.ctx, "said0", "x"))
		b.noError(b.SetCheckpoint(b.ctx, "said/odd", "x"))
		other := inGroup("3", "1", "other", 0)
		other.Channel = "-1/x"
		work := inGroup("", "1", "work", 0)
		work.Connector = "telegram-work"
		first := inGroup("", "1", "a", 0)
		b.noError(b.KeepSaid(b.ctx, 5, first, inGroup("4", "2", "b", 0), other, work))
		want := []storage.Chat{work.Chat, other.Chat, inGroup("", "", "", 0).Chat}
		b.equal("chats", ok(b.SaidChats(b.ctx))(b), want)
		b.noError(b.MoveSaid(b.ctx, "telegram", "-1", "-1001"))
		b.noError(b.MoveSaid(b.ctx, "telegram", "-1", "-1001"))
		b.again()
		b.equal("left", b.heard("-1", ""), []string(nil))
		fresh := first
		fresh.Channel, fresh.Said.Text = "-1001", "of the same number and second"
		b.noError(b.KeepSaid(b.ctx, 5, fresh))
		b.equal("moved", slices.Concat(b.heard("-1001", ""), b.heard("-1001", "4")), []string{"1 a", "1 of the same number and second", "2 b"})
		moved := storage.Chat{Connector: "telegram", Channel: "-1001"}
		b.noError(b.KeepSaid(b.ctx, 5, storage.SaidIn{Chat: moved, Said: claybot.Said{ID: "9", At: first.At + 1, Text: "later"}}))
		b.noError(b.ForgetSaid(b.ctx, moved, first.At))
		b.equal("what came later", slices.Concat(b.heard("-1001", ""), b.heard("-1001", "4")), []string{"9 later"})
		b.noError(b.ForgetSaid(b.ctx, moved, 0))
		b.equal("forgotten", ok(b.SaidChats(b.ctx))(b), want[:2])
		b.equal("other marks", ok(b.Checkpoint(b.ctx, "said0"))(b), "x")
	}},
	{"old messages of groups", func(b *bed) {
		b.noError(b.KeepSaid(b.ctx, 5, inGroup("", "1", "old", 0), inGroup("", "2", "new", 3600)))
		b.noError(b.Prune(b.ctx, time.Now().Add(storage.KeepSaid+time.Minute), storage.Retention{}))
		b.equal("pruned", b.heard("-1", ""), []string{"2 new"})
		time.Sleep(storage.KeepSaid + 2*time.Hour)
		b.equal("not shown before they are pruned", b.heard("-1", ""), []string(nil))
		b.equal("still there", len(ok(b.SaidChats(b.ctx))(b)), 1)
	}},
}
