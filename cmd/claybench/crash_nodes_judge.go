package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// thawGrace is how long after its thaw a node may still ask the model about
// something that others have done meanwhile: the question was on its way when the
// node was frozen. Its answer is refused.
const thawGrace = 2 * time.Second

// judge compares what was said with what is visible and what is in the database,
// which no node uses any more.
func (r *nodesRig) judge(ctx context.Context) (v *nodesVerdict, err error) {
	a, err := openShared(ctx, r.db, r.schema)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	v = &nodesVerdict{
		Seed: r.seed, Lease: r.lease.String(), Faults: make(map[string]int), Accepted: make(map[string]int), Unaccepted: r.places.pending(),
		Overlaps: len(r.model.Overlaps()), Restarted: r.storm.restarts, Stories: r.storm.stories, census: new(census),
	}
	for _, b := range r.storm.blows {
		v.Faults[b.fault.String()]++
	}
	if r.ends, err = endings(ctx, r.db, r.schema); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, *archive, *nodesVerdict) error{r.judgeChats, r.judgeWeb, r.judgeStore, r.judgeTakeovers} {
		if err := step(ctx, a, v); err != nil {
			return nil, err
		}
	}
	if v.instants, err = r.table.judge(ctx, a); err != nil {
		return nil, err
	}
	v.instants.ticks(a)
	v.CronDoubled, v.CronOdd, v.CronFired = v.instants.doubled, v.instants.unexplained, v.instants.fired
	v.Subagents = v.census.broken()
	v.Stories = slices.Concat(v.Stories, v.census.stories, v.instants.stories)
	if v.Accepted["telegram"] == 0 || v.Accepted["slack"] == 0 || v.Accepted["web"] == 0 || v.Writes == 0 {
		return nil, fmt.Errorf("there was no load: accepted %v, %d writes", v.Accepted, v.Writes)
	}
	return v, nil
}

// ticks counts the ticks of the heartbeat that stand twice in a history.
func (p *punctuality) ticks(a *archive) {
	for id, who := range a.told {
		if !strings.HasPrefix(string(id), "heartbeat/") {
			continue
		}
		n := 0
		for _, times := range who {
			n += times
		}
		if n > 1 {
			p.story(&p.doubled, "%s stands %d times in histories", id, n)
		}
	}
}

// judgeChats judges what is visible on the platforms. The order of a chat is that in
// which its messages were accepted: several sockets may bring them in another one
// than they were written in, a poll may not.
func (r *nodesRig) judgeChats(ctx context.Context, a *archive, v *nodesVerdict) error {
	places, err := r.accepted(ctx)
	if err != nil {
		return err
	}
	for _, c := range r.places.chats {
		platform, _, _ := strings.Cut(c.name, " ")
		rank := make(map[string]int)
		newest := 0
		for _, s := range c.said {
			n, ok := places[s.id]
			if !ok {
				continue // the judge of messages says that it was lost
			}
			v.Accepted[platform]++
			rank[s.marker] = n
			if platform == "telegram" && n < newest {
				v.OutOfOrder++
				v.story("%s: %s was accepted before an earlier one", c.name, s.marker)
			}
			newest = max(newest, n)
		}
		c.place = func(marker string) int { return rank[marker] }
		if err := r.judgeChat(ctx, a, v, c); err != nil {
			return err
		}
	}
	return nil
}

// judgeChat judges the messages of one chat and their orders.
func (r *nodesRig) judgeChat(ctx context.Context, a *archive, v *nodesVerdict, c *chat) error {
	plain := verdict{census: v.census}
	counts := c.counts()
	for _, s := range c.said {
		plain.message(ctx, a, c, s, counts[s.marker])
		for _, o := range s.orders {
			if err := v.census.count(ctx, a, s.id, o, c.outcome); err != nil {
				return err
			}
		}
		receipt, err := a.db.Receipt(ctx, s.id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if receipt.Run != nil {
			r.late(v, s.marker, *receipt.Run)
		}
	}
	plain.order(c)
	v.Answered, v.Noticed, v.Lost = v.Answered+plain.answered, v.Noticed+plain.noticed, v.Lost+plain.lost
	v.OutOfOrder, v.Explained, v.Unexplained = v.OutOfOrder+plain.disorder, v.Explained+plain.explained, v.Unexplained+plain.unexplained
	v.Stories = append(v.Stories, plain.stories...)
	return nil
}

// judgeWeb judges what was said over HTTP. Nothing is sent there: the output of
// the runs, in the order in which they ended, is what the caller reads.
func (r *nodesRig) judgeWeb(ctx context.Context, a *archive, v *nodesVerdict) error {
	for _, c := range r.web {
		v.Accepted["web"] += len(c.said)
		runs := make(map[claybot.RunID]claybot.Run)
		answers := make([]claybot.Run, len(c.said)) // to each message
		for i, s := range c.said {
			run, err := a.db.Run(ctx, c.runs[i])
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				return err
			}
			answers[i] = run
			if err == nil {
				runs[run.ID] = run
				r.late(v, s.marker, run)
			}
			found, err := a.db.FindMessages(ctx, string(c.runs[i]))
			if err != nil {
				return err
			}
			if len(found) != 1 {
				continue // a run that took several, whose orders cannot be told apart by it
			}
			for _, o := range s.orders {
				if err := v.census.count(ctx, a, found[0], o, func(word string) bool { return strings.Contains(run.Output+",", word+",") }); err != nil {
					return err
				}
			}
		}
		outputs := outputs(runs, r.ends)
		c.replies = func() []string { return outputs }
		counts := c.counts()
		for i, s := range c.said {
			switch run := answers[i]; {
			case counts[s.marker] > 0:
				v.Answered++
			case run.State == claybot.RunFailed && run.Error != nil:
				v.Noticed++
			default:
				v.Lost++
				v.story("%s: %s has no answer: run %s is %s %v", c.name, s.marker, c.runs[i], run.State, run.Error)
			}
		}
		var plain verdict
		plain.order(&c.chat)
		v.OutOfOrder, v.Unexplained = v.OutOfOrder+plain.disorder, v.Unexplained+plain.unexplained+plain.explained
		v.Stories = append(v.Stories, plain.stories...)
	}
	return nil
}

// outputs are what the runs of one agent said, in the order in which they ended, which
// is that in which they began: an agent has one at a time. Their own times are told by
// the clocks of several nodes, which are off by more than a run may take.
func outputs(runs map[claybot.RunID]claybot.Run, ends map[claybot.RunID]time.Time) []string {
	var sorted []claybot.Run
	for _, run := range runs {
		sorted = append(sorted, run)
	}
	slices.SortFunc(sorted, func(x, y claybot.Run) int {
		return cmp.Or(ends[x.ID].Compare(ends[y.ID]), cmp.Compare(x.Started, y.Started), cmp.Compare(x.ID, y.ID))
	})
	var texts []string
	for _, run := range sorted {
		texts = append(texts, run.Output)
	}
	return texts
}

// endings are when the ends of runs were committed, by the clock of this machine: a
// node's own idea of the database's clock is off by some milliseconds.
func endings(ctx context.Context, db *database, schema string) (map[claybot.RunID]time.Time, error) {
	rows, err := db.query(ctx, `SELECT id, CAST(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000 AS BIGINT) FROM `+schema+`.runs WHERE ended > 0`)
	if err != nil {
		return nil, err
	}
	ends := make(map[claybot.RunID]time.Time, len(rows))
	for _, r := range rows {
		us, err := strconv.ParseInt(r[1], 10, 64)
		if err != nil {
			return nil, err
		}
		ends[claybot.RunID(r[0])] = time.UnixMicro(us)
	}
	return ends, nil
}

// late counts the questions to the model about a message whose run had ended.
func (r *nodesRig) late(v *nodesVerdict, marker string, run claybot.Run) {
	if run.Ended == 0 {
		return
	}
	end, known := r.ends[run.ID]
	if !known {
		end = run.Ended.Time().Add(time.Millisecond) // it is cut to a millisecond
	}
	for _, at := range r.asks.times(marker) {
		switch {
		case !at.After(end):
		case r.storm.justThawed(at):
			v.AfterThaw++
		default:
			v.RunTwice++
			v.story("the model was asked about %s %v after run %s had ended", marker, at.Sub(end), run.ID)
		}
	}
}

// justThawed reports whether a frozen node went on shortly before a moment.
func (s *storm) justThawed(at time.Time) bool {
	return slices.ContainsFunc(s.blows, func(b *blow) bool {
		return b.fault == faultFreeze && !at.Before(b.over.Add(-thawGrace/4)) && at.Before(b.over.Add(thawGrace))
	})
}

// judgeStore asks the database itself.
func (r *nodesRig) judgeStore(ctx context.Context, _ *archive, v *nodesVerdict) error {
	stale, stories, err := ask(ctx, r.db, doubts(r.schema))
	if err != nil {
		return err
	}
	v.StaleWrites, v.Stories = stale, append(v.Stories, stories...)
	again, stories, err := ask(ctx, r.db, []doubt{twice(r.schema)})
	if err != nil {
		return err
	}
	v.RunTwice, v.Stories = v.RunTwice+again, append(v.Stories, stories...)
	v.Writes, err = r.db.count(ctx, "SELECT count(*) FROM rig.writes")
	return err
}

// judgeTakeovers reads how long the work of nodes lay after they were struck.
func (r *nodesRig) judgeTakeovers(ctx context.Context, _ *archive, v *nodesVerdict) error {
	all, err := traces(ctx, r.db)
	if err != nil {
		return err
	}
	var took [faultKinds][]time.Duration
	var disturbed [faultKinds]int
	for _, b := range r.storm.blows {
		if b.fault != faultKill && b.fault != faultFreeze {
			continue
		}
		for _, x := range takeovers(all, b) {
			if r.storm.disturbed(b, b.at.Add(x.took)) {
				disturbed[b.fault]++
				continue
			}
			took[b.fault] = append(took[b.fault], x.took)
			if x.took > r.lease+2*time.Second && len(v.Late) < 10 {
				v.Late = append(v.Late, x.story(all[x.agent], b))
			}
		}
	}
	v.Kill = figureOf(took[faultKill], disturbed[faultKill])
	v.Freeze = figureOf(took[faultFreeze], disturbed[faultFreeze])
	return nil
}

func (v *nodesVerdict) story(format string, args ...any) {
	if len(v.Stories) < 40 {
		v.Stories = append(v.Stories, fmt.Sprintf(format, args...))
	}
}

// accepted is the place of each message among those of its agent, in the order in
// which they were committed.
func (r *nodesRig) accepted(ctx context.Context) (map[claybot.MessageID]int, error) {
	rows, err := r.db.query(ctx, "SELECT id, n FROM "+r.schema+".messages")
	if err != nil {
		return nil, err
	}
	places := make(map[claybot.MessageID]int, len(rows))
	for _, row := range rows {
		n, err := strconv.Atoi(row[1])
		if err != nil {
			return nil, err
		}
		places[claybot.MessageID(row[0])] = n
	}
	return places, nil
}
