package subagents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// AskAgent implements tools.Agents.
func (s *Subagents) AskAgent(ctx context.Context, env tools.Env, to, text string, timeout time.Duration) (tools.Result, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return tools.Result{}, errors.New("text must not be empty")
	case timeout < 0 || timeout > maxPatience:
		return tools.Result{}, fmt.Errorf("timeout %v is not within 0 and %v", timeout, maxPatience)
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	m, err := s.asked(ctx, env, to, text, timeout)
	if err != nil {
		return tools.Result{}, err
	}
	wait := claybot.Awaiting{
		Reason:  claybot.AwaitChildren,
		Answers: []claybot.MessageID{m.Awaited.ID},
		Until:   claybot.At(m.Deadline.Time().Add(answerGrace)),
	}
	answers, err := s.answers(ctx, wait)
	if err != nil || answers == nil {
		return tools.Result{Wait: &wait}, err
	}
	b, err := json.Marshal(answers[0])
	return tools.Result{Text: string(b), Untrusted: answers[0].Tainted}, err
}

// asked returns the question of a call: the one that was posted before, or one
// that it posts now. It needs starting.
func (s *Subagents) asked(ctx context.Context, env tools.Env, to, text string, timeout time.Duration) (claybot.AgentMessage, error) {
	id := claybot.MessageID("ask/" + env.UID(0))
	r, err := s.Inbox.Receipt(ctx, id)
	if err == nil {
		return r.Message, nil
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return claybot.AgentMessage{}, fmt.Errorf("look for the question: %w", err)
	}
	target, err := s.target(ctx, env.Agent, to)
	if err != nil {
		return claybot.AgentMessage{}, err
	}
	waiting, err := s.waitsFor(ctx, env)
	if err != nil {
		return claybot.AgentMessage{}, err
	}
	if slices.Contains(waiting, target.ID) {
		return claybot.AgentMessage{}, fmt.Errorf("agent %s waits for you already; asking it would make both wait for ever", target.ID)
	}
	m := claybot.AgentMessage{
		ID: id, Type: claybot.MessageSystem, Kind: claybot.KindMessage, Text: claybot.Clean(text), At: claybot.Now(),
		From:     claybot.Sender{Agent: env.Agent.ID, Name: env.Agent.Descriptor.Name},
		Hops:     s.Work.Of(env.Run).Hops() + 1,
		Awaited:  &claybot.Awaited{Agent: env.Agent.ID, Run: env.Run, ID: answerID(env, 0)},
		Deadline: claybot.At(time.Now().Add(patience(timeout))), Tainted: env.Tainted,
		Route: &claybot.Route{}, // only the asker gets the answer
	}
	m.Root = s.paysFor(env, target)
	if err := s.maySpeak(ctx, env, m.Hops); err != nil {
		return m, err
	}
	return m, s.deliver(ctx, target, m)
}

// waitsFor lists the agents that wait for the caller, directly or through
// others: those whose questions its run works on, and whose wait in its inbox.
func (s *Subagents) waitsFor(ctx context.Context, env tools.Env) ([]claybot.AgentID, error) {
	var found []claybot.AgentID
	todo := []claybot.AgentID{env.Agent.ID}
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		askers, err := s.askers(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, a := range askers {
			if !slices.Contains(found, a) {
				found = append(found, a)
				todo = append(todo, a)
			}
		}
	}
	return found, nil
}

// askers are the agents that wait for what an agent works on or will.
func (s *Subagents) askers(ctx context.Context, id claybot.AgentID) ([]claybot.AgentID, error) {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err != nil {
		return nil, storage.Ignore(err, storage.ErrNotFound)
	}
	messages, err := s.Inbox.Waiting(ctx, id, inbox.MaxWaiting)
	if err != nil {
		return nil, err
	}
	if e.Run != "" {
		run, err := s.Runs.Run(ctx, e.Run)
		if err != nil {
			return nil, storage.Ignore(err, storage.ErrNotFound)
		}
		for _, m := range run.Messages {
			r, err := s.Inbox.Receipt(ctx, m)
			if err != nil {
				return nil, err
			}
			messages = append(messages, r.Message)
		}
	}
	var askers []claybot.AgentID
	for _, m := range messages {
		if m.Awaited != nil {
			askers = append(askers, m.Awaited.Agent)
		}
	}
	return askers, nil
}
