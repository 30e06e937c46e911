package subagents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Spawn runs one subagent for each task, see tools.Agents and tools.Spawning. It is idempotent: a repeated
// call finds what it started, and starts what has become due meanwhile.
func (s *Starter) Spawn(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error) {
	p, err := s.advance(ctx, env, tasks, how)
	if err != nil {
		return tools.Result{}, err
	}
	switch {
	case how.Enough != nil && how.Enough(p.ended):
		for i, id := range p.open {
			own, n := how.Of(env, i)
			s.messenger.directory.supervisor.stopTask(ctx, id, answerID(own, n))
		}
	case len(p.open) > 0:
		if how.Enough != nil || p.left {
			p.wait.Need = 1
		}
		return tools.Result{Wait: &p.wait}, nil
	}
	limit := maxAnswers
	if env.Agent.Descriptor.Type == claybot.AgentFlow { // no model reads them
		limit = maxFlowAnswers
	} else {
		asTexts(p.ended)
	}
	text, err := fitAnswers(p.ended, limit)
	tainted := slices.ContainsFunc(p.ended, func(a *claybot.Result) bool { return a != nil && a.Tainted })
	return tools.Result{Text: text, Untrusted: tainted}, err
}

// A progress is how far the tasks of a call have come.
type progress struct {
	ended []*claybot.Result       // nil: it has not
	open  map[int]claybot.AgentID // at work
	left  bool                    // some are to start when others have ended
	wait  claybot.Awaiting        // for those at work
}

// advance starts the tasks of a call that are due.
func (s *Starter) advance(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (p progress, err error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := s.admit(ctx, env, tasks, how); err != nil {
		return p, err
	}
	p = progress{ended: make([]*claybot.Result, len(tasks)), open: make(map[int]claybot.AgentID), wait: claybot.Awaiting{Reason: claybot.AwaitChildren}}
	for i, t := range tasks {
		own, n := how.Of(env, i)
		if p.ended[i], err = s.answered(ctx, answerID(own, n)); err != nil {
			return p, err
		}
		if a := p.ended[i]; a != nil && a.AgentID != "" { // its task may be deleted
			if t.Agent == "" {
				s.work.Of(env.Run).Tell(runs.Started(env.Run, a.AgentID, cmp.Or(t.Flow, subagentName(t)))) // a crash may have come before
			}
			continue
		}
		if p.ended[i] == nil && how.AtOnce > 0 && len(p.open) >= how.AtOnce {
			p.left = true
			continue
		}
		c, err := s.start(ctx, own, n, t, true)
		if err != nil {
			return p, err
		}
		until := claybot.At(c.deadline.Time().Add(answerGrace))
		switch {
		case p.ended[i] != nil:
		case c.refused != "":
			p.ended[i] = &claybot.Result{Error: c.refused}
		case claybot.Now() >= until:
			p.ended[i] = &claybot.Result{Error: noAnswer}
		default:
			p.open[i] = c.id
			p.wait.Answers = append(p.wait.Answers, answerID(own, n))
			p.wait.Until = earlier(p.wait.Until, until, how)
			continue
		}
		p.ended[i].AgentID = cmp.Or(p.ended[i].AgentID, c.id)
	}
	return p, nil
}

// earlier is the end of a pause that waits for one more task: that of all tasks, or where each end counts,
// that of the first.
func earlier(a, b claybot.Time, how tools.Spawning) claybot.Time {
	if a == 0 || how.AtOnce == 0 && how.Enough == nil {
		return max(a, b)
	}
	return min(a, b)
}

// admit checks that a call may start its tasks, unless an earlier pass has begun with them. The caller
// holds starting.
func (s *Starter) admit(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) error {
	again, err := s.begunBefore(ctx, env, tasks, how)
	if again || err != nil {
		return err
	}
	for i, t := range tasks {
		if err := s.checkTask(env, t); err != nil {
			if len(tasks) > 1 {
				return fmt.Errorf("task %d: %w", i+1, err)
			}
			return err
		}
	}
	if err := s.messenger.far(ctx, env, s.work.Of(env.Run).Hops()+1); err != nil {
		return err
	}
	return s.room(ctx, env, fresh(tasks))
}

// answered returns the result of a task; nil while there is none.
func (s *Starter) answered(ctx context.Context, id claybot.MessageID) (*claybot.Result, error) {
	r, err := s.inbox.Receipt(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read an answer: %w", err)
	case r.Message.Answer == nil:
		return &claybot.Result{Error: "the answer cannot be read"}, nil
	}
	return r.Message.Answer, nil
}

// asTexts makes texts of what flows put out, for a model.
func asTexts(answers []*claybot.Result) {
	for _, a := range answers {
		if a != nil && a.Value != nil {
			a.Output, a.Value = string(a.Value), nil
		}
	}
}

// fitAnswers writes answers so that all of them fit into one result: if they do not as they are, long
// outputs are shortened, each to the same length.
func fitAnswers(answers []*claybot.Result, limit int) (string, error) {
	if text, err := json.Marshal(answers); err != nil || len(text) <= limit {
		return string(text), err
	}
	for room := limit; ; room /= 2 {
		short := make([]*claybot.Result, len(answers))
		for i, a := range answers {
			if a != nil {
				one := *a
				one.Output = texts.Shorten(one.Output, room/len(short))
				short[i] = &one
			}
		}
		text, err := json.Marshal(short)
		if err != nil || len(text) <= limit || room < len(answers) {
			return string(text), err
		}
	}
}

// stopTask stops the agent of a task that a run does not wait for any more. Of a thread, it ends the task.
func (s *Supervisor) stopTask(ctx context.Context, id claybot.AgentID, answer claybot.MessageID) {
	e, err := s.index.IndexedAgentByID(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound): // it was deleted
	case err != nil:
		s.log.Error("failed to stop a subagent that is not needed", "agent", id, "err", err)
	case e.Descriptor.IsThread():
		s.haltTasks(ctx, e, func(a claybot.Awaited) bool { return a.ID == answer })
	case e.Busy:
		s.Halt(ctx, e, ByParent)
	}
}
