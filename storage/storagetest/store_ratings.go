package storagetest

import (
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// rated is what ann says of a run by an emoji.
func rated(emoji string, at claybot.Time, withdrawn bool) claybot.Feedback {
	vote := claybot.VoteUp
	if emoji == "👎" {
		vote = claybot.VoteDown
	}
	return claybot.Feedback{By: "chat/ann", Message: "77", Emoji: emoji, Vote: vote, At: at, Withdrawn: withdrawn}
}

var ratingTests = []storeTest{
	{"the newest report about an emoji counts", func(b *bed) {
		lease, _ := b.begin("r1")
		for i, step := range []struct {
			f    claybot.Feedback
			want bool
			left int
		}{
			{rated("👍", 10, false), true, 1},
			{rated("👍", 10, false), false, 1}, // repeated
			{rated("👎", 30, true), true, 1},   // removed before it was added
			{rated("👎", 20, false), false, 1},
			{rated("👍", 40, true), true, 0},
			{rated("👍", 10, false), false, 0},
			{rated("👍", 50, false), true, 1},
			{rated("👍", 70, false), false, 1},
			{rated("👍", 60, true), false, 1}, // between two that say the same
		} {
			b.equal(fmt.Sprint("step ", i), ok(b.Rate(b.ctx, "r1", step.f))(b), step.want)
			b.equal(fmt.Sprint("after step ", i), len(claybot.Given(b.run("r1").Feedback)), step.left)
		}
		b.succeed(lease, "r1")
		b.again()
		want := []claybot.Feedback{rated("👍", 70, false)}
		b.equal("after the end", claybot.Given(b.run("r1").Feedback), want)
		bob := rated("👎", 90, false)
		bob.By = "chat/bob"
		b.equal("of another person", ok(b.Rate(b.ctx, "r1", bob))(b), true)
		b.equal("both", claybot.Given(b.run("r1").Feedback), append(want, bob))
	}},
	{"of a paused run, and of none", func(b *bed) {
		lease, _ := b.begin("r1")
		ok(b.Rate(b.ctx, "r1", rated("👍", 10, false)))(b)
		b.pause(lease, "r1", "a1")
		b.equal("paused", b.run("r1").Feedback, []claybot.Feedback{rated("👍", 10, false)})
		_, err := b.Rate(b.ctx, "r2", rated("👍", 10, false))
		b.is(err, storage.ErrNotFound)
	}},
	{"bounded", func(b *bed) {
		b.begin("r1")
		for i := range storage.MaxFeedback {
			f := rated("👍", 10, false)
			f.By = fmt.Sprint("chat/", i)
			ok(b.Rate(b.ctx, "r1", f))(b)
		}
		_, err := b.Rate(b.ctx, "r1", rated("👍", 10, false))
		b.is(err, storage.ErrTooMany)
		first := rated("👍", 20, true)
		first.By = "chat/0"
		b.equal("a known one", ok(b.Rate(b.ctx, "r1", first))(b), true)
	}},
	{"what one message of the platform shows", func(b *bed) {
		other := reply("x1")
		other.Route.ChannelID = "C2"
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2"), reply("o3"), other))(b)
		for id, receipt := range map[string]string{"o1": "77", "o2": "78", "o3": "77", "x1": "77"} {
			b.noError(b.attempt(id))
			b.resolve(id, storage.Resolution{State: claybot.SendSent, Receipt: receipt})
		}
		b.equal("shown", outIDs(ok(b.SentAs(b.ctx, dest, "77"))(b)), []string{"o3", "o1"})
		b.equal("none", len(ok(b.SentAs(b.ctx, dest, "79"))(b)), 0)
	}},
}
