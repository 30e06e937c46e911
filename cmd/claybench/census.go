package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A census is what became of subagents: how many there were, and each way in
// which a promise about them was broken.
type census struct {
	started, failed, stopped int
	interrupted              int // of those that failed: killed again and again in one model call
	notices, reports         int // that came, once each
	lost, doubled            int // notices and reports
	spawns, answers          int // calls of parents that succeeded, and what they were told
	wrong                    int // anything else that must not be
	// forgive accepts an order that the daemon refused with an error, as it may where
	// system calls fail. What it had begun of it is not looked at.
	forgive bool
	refused int
	stories []string
}

// broken is how many promises were.
func (c *census) broken() int { return c.lost + c.doubled + c.wrong }

func (c *census) String() string {
	return fmt.Sprintf("%d started, %d failed (%d interrupted), %d stopped; %d notices and %d reports, lost %d, doubled %d; %d spawns with %d answers; wrong %d",
		c.started, c.failed, c.interrupted, c.stopped, c.notices, c.reports, c.lost, c.doubled, c.spawns, c.answers, c.wrong)
}

func (c *census) story(count *int, format string, args ...any) {
	*count++
	if len(c.stories) < 20 {
		c.stories = append(c.stories, fmt.Sprintf(format, args...))
	}
}

// An offspring is a job whose agent was looked up.
type offspring struct {
	job
	agent storage.IndexEntry
	run   *claybot.Run // nil: its task was never taken by one
}

// count looks up what became of an order that a message carried. visible
// returns how often the reader sees the job with its fate.
func (c *census) count(ctx context.Context, a *archive, message claybot.MessageID, o order, visible func(word string) bool) error {
	asked, err := a.db.Receipt(ctx, message)
	if errors.Is(err, storage.ErrNotFound) || err == nil && asked.Run == nil {
		return nil // never taken: that is lost already, as a message without an answer
	}
	if err != nil {
		return err
	}
	if c.forgive && slices.ContainsFunc(a.results[callKey{asked.Run.ID, o.call().ID}], func(text string) bool { return strings.HasPrefix(text, "error: ") }) {
		c.refused++
		return nil
	}
	var all []offspring
	for _, j := range o.jobs {
		found := a.children[j.name]
		switch {
		case len(found) > 1:
			c.story(&c.wrong, "%s was started %d times", j.name, len(found))
		case len(found) == 0 && asked.Run.State == claybot.RunSucceeded:
			c.story(&c.wrong, "%s was never started, but run %s succeeded; its call had the results %q", j.name, asked.Run.ID, a.results[callKey{asked.Run.ID, o.call().ID}])
		case len(found) == 1:
			x, err := c.child(ctx, a, asked, o, offspring{job: j, agent: found[0]})
			if err != nil {
				return err
			}
			all = append(all, x)
		}
	}
	if o.awaited && asked.Run.State == claybot.RunSucceeded && len(all) == len(o.jobs) {
		c.spawn(a, asked, o, all, visible)
	}
	return nil
}

// child looks up the task of one subagent and who heard of its end. asked is
// the message that made its parent start it.
func (c *census) child(ctx context.Context, a *archive, asked storage.Receipt, o order, x offspring) (offspring, error) {
	c.started++
	if p := x.agent.Descriptor.Parent; p != asked.Agent {
		c.story(&c.wrong, "%s has the parent %s instead of %s", x.name, p, asked.Agent)
	}
	t, err := a.db.Receipt(ctx, claybot.MessageID("task/"+x.agent.Descriptor.UID))
	// What the parent had begun when it failed may stay undone.
	given := asked.Run.State == claybot.RunSucceeded
	switch {
	case errors.Is(err, storage.ErrNotFound) && given:
		c.story(&c.wrong, "%s was made and has no task", x.name)
		return x, nil
	case errors.Is(err, storage.ErrNotFound):
		return x, nil
	case err != nil:
		return x, err
	case t.Skipped != "":
		if given || !o.awaited {
			c.story(&c.wrong, "the task of %s was skipped: %s", x.name, t.Skipped)
		}
		c.stopped++
		return x, nil
	case t.Run == nil || !t.Run.State.Ended():
		c.story(&c.wrong, "%s has not ended: %+v", x.name, t.Run)
		return x, nil
	}
	x.run = t.Run
	c.end(asked, o, x)
	c.tidings(a, asked.Agent, o, x)
	return x, nil
}

// end checks that a run ended in a way that it may.
func (c *census) end(asked storage.Receipt, o order, x offspring) {
	code := ""
	if x.run.Error != nil {
		code = x.run.Error.Code
	}
	ok := false
	switch x.run.State {
	case claybot.RunSucceeded:
		ok = !x.fails
	case claybot.RunFailed:
		c.failed++
		if code == "interrupted" {
			c.interrupted++
		}
		ok = code == "interrupted" || x.fails && code == "model_refused"
	case claybot.RunCanceled:
		c.stopped++
		ok = o.awaited && asked.Run.State != claybot.RunSucceeded
	}
	if !ok {
		c.story(&c.wrong, "%v ended as %s %+v", x.job, x.run.State, x.run.Error)
	}
}

// tidings checks who was told of the end: of a failure the parent, once, in a
// notice; of a success the parent, once, where a report was wanted; no agent
// where the parent waited.
func (c *census) tidings(a *archive, parent claybot.AgentID, o order, x offspring) {
	for _, t := range []struct {
		prefix string
		want   bool
		came   *int
	}{
		{"failure/", x.run.State == claybot.RunFailed && !o.awaited, &c.notices},
		{"result/", x.run.State == claybot.RunSucceeded && !o.awaited && o.report, &c.reports},
	} {
		here, elsewhere := a.heard(parent, claybot.MessageID(t.prefix+string(x.run.ID)))
		switch {
		case t.want && here == 0:
			c.story(&c.lost, "the parent %s of %s never heard %s%s", parent, x.name, t.prefix, x.run.ID)
		case here > 1 || elsewhere > 0 || !t.want && here > 0:
			c.story(&c.doubled, "%s%s of %s stands %d times with its parent and %d times elsewhere", t.prefix, x.run.ID, x.name, here, elsewhere)
		case t.want:
			*t.came++
		}
	}
}

// spawn checks what a parent was told that waited and succeeded: one result for
// the call, with one entry for each child that says how it ended, and the same
// once in what the reader sees.
func (c *census) spawn(a *archive, asked storage.Receipt, o order, all []offspring, visible func(word string) bool) {
	c.spawns++
	results := a.results[callKey{asked.Run.ID, o.call().ID}]
	var answers []claybot.Result
	if len(results) != 1 || json.Unmarshal([]byte(results[0]), &answers) != nil || len(answers) != len(all) {
		c.story(&c.wrong, "the call for %s in run %s has the results %q", all[0].name, asked.Run.ID, results)
		return
	}
	for i, x := range all {
		got := answers[i]
		switch {
		case x.run == nil:
			continue // told already
		case got.AgentID != x.agent.ID || got.RunID != x.run.ID || got.OK != (x.run.State == claybot.RunSucceeded) || got.OK && got.Output != x.done() || !got.OK && got.Error == "":
			c.story(&c.wrong, "%s ended as %s in run %s of %s; its parent was told %+v", x.name, x.run.State, x.run.ID, x.agent.ID, got)
		case mayBeMissing(asked.Replies): // it has a notice in its place
		case !visible(x.name + "=" + fate(got.OK)):
			c.story(&c.wrong, "%s=%s is not once in the answer that is seen", x.name, fate(got.OK))
		default:
			c.answers++
		}
	}
}
