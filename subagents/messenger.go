package subagents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// The limits of messages between agents.
const (
	maxHops      = 20 // ten exchanges of two agents without a message from a person
	maxPerMinute = 20 // messages of one sender
)

// A speech counts the messages between agents. The zero value is ready; its counts need
// not survive a restart.
type speech struct {
	mu   sync.Mutex
	said map[claybot.AgentID][]time.Time
}

// allow counts one message of the caller, or refuses it.
func (x *speech) allow(env tools.Env) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.said == nil {
		x.said = make(map[claybot.AgentID][]time.Time)
	}
	now := time.Now()
	recent := slices.DeleteFunc(x.said[env.Agent.ID], func(t time.Time) bool { return now.Sub(t) > time.Minute })
	if len(recent) >= maxPerMinute {
		x.said[env.Agent.ID] = recent
		return fmt.Errorf("you have sent %d messages within a minute; wait before you send more", len(recent))
	}
	if len(x.said) > 10_000 { // bounded; the worst is that some may say more
		clear(x.said)
	}
	x.said[env.Agent.ID] = append(recent, now)
	return nil
}

// A Messenger passes messages between agents.
type Messenger struct {
	directory *Directory
	index     Index
	inbox     Inbox
	runs      Runs
	people    People
	accept    func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posted, error)
	work      *runs.AtWork
	starting  *sync.Mutex // held while an agent is asked, so that no two wait for each other
	speech    speech
}

// maySpeak counts one message of the caller, or refuses it.
func (m *Messenger) maySpeak(ctx context.Context, env tools.Env, hops int) error {
	if err := m.far(ctx, env, hops); err != nil {
		return err
	}
	return m.speech.allow(env)
}

// far refuses a message beyond the hop limit, and notifies the owner.
func (m *Messenger) far(ctx context.Context, env tools.Env, hops int) error {
	if hops <= maxHops {
		return nil
	}
	m.people.TellOwner(ctx, env.Agent, fmt.Sprintf("exchange/%s/%s", root(env.Agent), m.work.Of(env.Run).Newest().ID), func(v texts.Voice) string { return v.Exchange(maxHops, speaker(env.Agent)) })
	return fmt.Errorf("agents have kept each other at work %d times without a word of a person; stop here and answer", maxHops)
}

// SendAgentMessage implements tools.Agents.
func (m *Messenger) SendAgentMessage(ctx context.Context, env tools.Env, to, text string, silent bool) (claybot.AgentID, error) {
	text = strings.TrimSpace(claybot.Clean(text))
	switch {
	case text == "":
		return "", errors.New("text must not be empty")
	case len(text) > inbox.MaxText:
		return "", fmt.Errorf("text has %d bytes; the limit is %d", len(text), inbox.MaxText)
	}
	target, err := m.directory.target(ctx, env.Agent, to)
	if err != nil {
		return "", err
	}
	msg := claybot.AgentMessage{
		ID: claybot.MessageID("agent/" + env.UID(0)), Type: claybot.MessageSystem, Kind: claybot.KindMessage,
		From: claybot.Sender{Agent: env.Agent.ID, Name: speaker(env.Agent)},
		Text: text, Silent: silent, At: claybot.Now(), Hops: m.work.Of(env.Run).Hops() + 1, Tainted: env.Tainted, Private: true,
	}
	msg.Root, msg.Budgets = m.paysFor(env, target)
	if _, err := m.inbox.Receipt(ctx, msg.ID); err == nil {
		return target.ID, nil // said before a crash
	}
	if err := m.maySpeak(ctx, env, msg.Hops); err != nil {
		return "", err
	}
	return target.ID, m.deliver(ctx, target, msg)
}

// paysFor returns the run whose budget pays for the work of a message's receiver, a
// descendant of the sender, and the budgets of workflows. It is empty for all others.
func (m *Messenger) paysFor(env tools.Env, to claybot.Agent) (claybot.RunID, []claybot.RunBudget) {
	if to.Descriptor.Root == "" || to.Descriptor.Root != root(env.Agent) {
		return "", nil
	}
	work := m.work.Of(env.Run)
	return work.Root(env.Run), work.Budgets(env.Run)
}

// deliver posts a message from one agent to another. It returns an error when the receiver
// will not read it.
func (m *Messenger) deliver(ctx context.Context, to claybot.Agent, msg claybot.AgentMessage) error {
	done, err := m.accept(ctx, to, msg)
	switch {
	case err != nil:
		return err
	case done.Skipped == "inbox_full":
		return fmt.Errorf("too many messages wait for agent %s; it did not get yours", to.ID)
	case done.Skipped != "":
		return fmt.Errorf("agent %s did not get your message: %s", to.ID, done.Skipped)
	}
	return nil
}

// speaker returns the name of an agent as other agents see it.
func speaker(a claybot.Agent) string {
	if a.Descriptor.Name != "" {
		return a.Descriptor.Name
	}
	return string(a.Descriptor.Type)
}

// AskAgent implements tools.Agents.
func (m *Messenger) AskAgent(ctx context.Context, env tools.Env, to, text string, timeout time.Duration) (tools.Result, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return tools.Result{}, errors.New("text must not be empty")
	case timeout < 0 || timeout > maxPatience:
		return tools.Result{}, fmt.Errorf("timeout %v is not within 0 and %v", timeout, maxPatience)
	}
	m.starting.Lock()
	defer m.starting.Unlock()
	msg, err := m.asked(ctx, env, 0, to, text, timeout)
	if err != nil {
		return tools.Result{}, err
	}
	wait := claybot.Awaiting{
		Reason:  claybot.AwaitChildren,
		Answers: []claybot.MessageID{msg.Awaited.ID},
		Until:   claybot.At(msg.Deadline.Time().Add(answerGrace)),
	}
	answers, err := results(ctx, m.inbox, wait)
	if err != nil || answers == nil {
		return tools.Result{Wait: &wait}, err
	}
	b, err := json.Marshal(answers[0])
	return tools.Result{Text: string(b), Untrusted: answers[0].Tainted}, err
}

// questionID is the id of the i-th question of a call to an agent that is there.
func questionID(env tools.Env, i int) claybot.MessageID {
	return claybot.MessageID("ask/" + env.UID(i))
}

// asked returns the i-th question of a call: the one that was posted before, or one
// that it posts now. It needs starting.
func (m *Messenger) asked(ctx context.Context, env tools.Env, i int, to, text string, timeout time.Duration) (claybot.AgentMessage, error) {
	id := questionID(env, i)
	r, err := m.inbox.Receipt(ctx, id)
	if err == nil {
		return r.Message, nil
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return claybot.AgentMessage{}, fmt.Errorf("look for the question: %w", err)
	}
	target, err := m.directory.target(ctx, env.Agent, to)
	if err != nil {
		return claybot.AgentMessage{}, err
	}
	waiting, err := m.waitsFor(ctx, env)
	if err != nil {
		return claybot.AgentMessage{}, err
	}
	if slices.Contains(waiting, target.ID) {
		return claybot.AgentMessage{}, fmt.Errorf("agent %s waits for you already; asking it would make both wait for ever", target.ID)
	}
	msg := claybot.AgentMessage{
		ID: id, Type: claybot.MessageSystem, Kind: claybot.KindMessage, Text: claybot.Clean(text), At: claybot.Now(),
		From:     claybot.Sender{Agent: env.Agent.ID, Name: env.Agent.Descriptor.Name},
		Hops:     m.work.Of(env.Run).Hops() + 1,
		Awaited:  &claybot.Awaited{Agent: env.Agent.ID, Run: env.Run, ID: answerID(env, i)},
		Deadline: claybot.At(time.Now().Add(patience(timeout))), Tainted: env.Tainted, Private: true,
		Route: &claybot.Route{}, // only the asker gets the answer
	}
	msg.Root, msg.Budgets = m.paysFor(env, target)
	if err := m.maySpeak(ctx, env, msg.Hops); err != nil {
		return msg, err
	}
	return msg, m.deliver(ctx, target, msg)
}

// waitsFor lists the agents that wait for the caller, directly or through
// others: those whose questions its run works on, and whose wait in its inbox.
func (m *Messenger) waitsFor(ctx context.Context, env tools.Env) ([]claybot.AgentID, error) {
	var found []claybot.AgentID
	todo := []claybot.AgentID{env.Agent.ID}
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		askers, err := m.askers(ctx, id)
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
func (m *Messenger) askers(ctx context.Context, id claybot.AgentID) ([]claybot.AgentID, error) {
	e, err := m.index.IndexedAgentByID(ctx, id)
	if err != nil {
		return nil, storage.Ignore(err, storage.ErrNotFound)
	}
	messages, err := m.inbox.Waiting(ctx, id, inbox.MaxWaiting)
	if err != nil {
		return nil, err
	}
	if e.Run != "" {
		run, err := m.runs.Run(ctx, e.Run)
		if err != nil {
			return nil, storage.Ignore(err, storage.ErrNotFound)
		}
		for _, id := range run.Messages {
			r, err := m.inbox.Receipt(ctx, id)
			if err != nil {
				return nil, err
			}
			messages = append(messages, r.Message)
		}
	}
	var askers []claybot.AgentID
	for _, x := range messages {
		if x.Awaited != nil {
			askers = append(askers, x.Awaited.Agent)
		}
	}
	return askers, nil
}
