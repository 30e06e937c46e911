package storagetest

import (
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A step tries to move a run; what a store must refuse, it refuses whole.
type step struct {
	name string
	try  func(b *bed, l storage.Lease, id claybot.RunID) error
}

func finishing(state claybot.RunState, events ...claybot.EventType) step {
	o := storage.Outcome{State: state, Replies: []claybot.Outgoing{reply("never")}}
	for _, t := range events {
		o.Events = append(o.Events, claybot.Event{Type: t})
	}
	return step{fmt.Sprint("finish ", state, events), func(b *bed, l storage.Lease, id claybot.RunID) error {
		_, err := b.Finish(b.ctx, l, id, o)
		return err
	}}
}

func suspending(events ...claybot.EventType) step {
	p := storage.Pause{Awaiting: claybot.Awaiting{Until: claybot.At(time.Now().Add(time.Hour))}}
	for _, t := range events {
		p.Events = append(p.Events, claybot.Event{Type: t})
	}
	return step{fmt.Sprint("suspend ", events), func(b *bed, l storage.Lease, id claybot.RunID) error {
		return b.Suspend(b.ctx, l, id, p)
	}}
}

func appending(events ...claybot.EventType) step {
	var list []claybot.Event
	for _, t := range events {
		list = append(list, claybot.Event{Type: t})
	}
	return step{fmt.Sprint("append ", events), func(b *bed, l storage.Lease, id claybot.RunID) error {
		return b.Append(b.ctx, l, id, true, list...)
	}}
}

// untouched checks that steps are refused and change nothing.
func (b *bed) untouched(l storage.Lease, id claybot.RunID, steps ...step) {
	b.Helper()
	run, events, figures := b.run(id), b.events(id, 0), b.figures()
	b.commits.take()
	for _, s := range steps {
		if s.try(b, l, id) == nil {
			b.Fatalf("%s of a run that is %s was not refused", s.name, run.State)
		}
		b.equal("run after "+s.name, b.run(id), run)
		b.equal("events after "+s.name, b.events(id, 0), events)
		b.equal("figures after "+s.name, b.figures(), figures)
	}
	for _, c := range b.commits.take() {
		b.equal("told", len(c.Events), 0)
	}
}

var stateTests = []storeTest{
	{"a running run", func(b *bed) {
		l, _ := b.begin("r1")
		b.untouched(
			l, "r1",
			finishing(claybot.RunPending, claybot.EventRunFinished),
			finishing(claybot.RunRunning, claybot.EventRunFinished),
			finishing(claybot.RunAwaiting, claybot.EventAwaitingInput),
			finishing("", claybot.EventRunFinished),
			finishing(claybot.RunSucceeded),
			finishing(claybot.RunSucceeded, claybot.EventRunFailed),
			finishing(claybot.RunFailed, claybot.EventRunFailed, claybot.EventRunFailed),
			finishing(claybot.RunCanceled, claybot.EventRunCanceled, claybot.EventToolCalled),
			suspending(claybot.EventRunFinished),
			appending(claybot.EventRunCanceled),
			appending(claybot.EventToolCalled, claybot.EventRunFailed),
		)
	}},
	{"a paused run", func(b *bed) {
		l, _ := b.begin("r1")
		b.pause(l, "r1")
		time.Sleep(2 * time.Hour)
		l = b.hold(nodeOne).Lease
		b.untouched(l, "r1", finishing(claybot.RunSucceeded, claybot.EventRunFinished), suspending(claybot.EventAwaitingInput))
		for i, end := range []step{finishing(claybot.RunFailed, claybot.EventRunFailed), finishing(claybot.RunCanceled, claybot.EventRunCanceled)} {
			id := claybot.RunID(fmt.Sprint("r", i+1))
			if i > 0 {
				l, _ = b.begin(id)
				b.pause(l, id)
				time.Sleep(2 * time.Hour)
				l = b.hold(nodeOne).Lease
			}
			b.noError(end.try(b, l, id))
		}
	}},
	{"an ended run", func(b *bed) {
		ends := []step{
			finishing(claybot.RunSucceeded, claybot.EventRunFinished),
			finishing(claybot.RunFailed, claybot.EventRunFailed),
			finishing(claybot.RunCanceled, claybot.EventRunCanceled),
		}
		for i, end := range ends {
			id := claybot.RunID(fmt.Sprint("r", i))
			l, _ := b.begin(id)
			b.noError(end.try(b, l, id))
			l, _ = b.begin(id + "-next")
			b.untouched(l, id, append([]step{
				suspending(claybot.EventAwaitingInput), appending(claybot.EventToolCalled), appending(claybot.EventRunFinished),
				{"take", func(b *bed, l storage.Lease, id claybot.RunID) error {
					_, err := b.Take(b.ctx, l, id, 1, nil)
					return err
				}},
				{"draft", func(b *bed, l storage.Lease, id claybot.RunID) error {
					return b.SaveDraft(b.ctx, l, id, claybot.Draft{Outgoing: "x"})
				}},
			}, ends...)...)
			b.succeed(l, id+"-next")
		}
	}},
	{"an id whose message waits", func(b *bed) {
		l, _ := b.begin("r1")
		b.to(b.agent, reserving("m1", "r2"))
		b.untouched(
			l, "r2",
			finishing(claybot.RunSucceeded, claybot.EventRunFinished),
			finishing(claybot.RunCanceled, claybot.EventRunCanceled),
			suspending(claybot.EventAwaitingInput),
			appending(claybot.EventToolCalled),
		)
	}},
	{"a canceled id", func(b *bed) {
		l, _ := b.begin("r1")
		b.to(b.agent, reserving("m1", "r2"))
		ok(b.Drop(b.ctx, b.agent, "dropped", "m1"))(b)
		b.untouched(
			l, "r2",
			finishing(claybot.RunCanceled, claybot.EventRunCanceled),
			appending(claybot.EventToolCalled),
			suspending(claybot.EventAwaitingInput),
		)
	}},
}
