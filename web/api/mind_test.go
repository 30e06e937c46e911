package api_test

import (
	"context"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

// A mind is a model that answers by what it is told: with the plan of the last
// message that has one, else with an echo.
type mind struct {
	mu    sync.Mutex
	plans map[string][]llmtest.Reply // by a part of the message, one for each step
	gates map[string]chan struct{}   // by a part of the message: closed to go on
	after map[string]bool            // the gate is in the middle of the text
}

func newMind() *mind {
	return &mind{plans: make(map[string][]llmtest.Reply), gates: make(map[string]chan struct{}), after: make(map[string]bool)}
}

func (m *mind) plan(key string, replies ...llmtest.Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans[key] = replies
}

// hold keeps answers to messages that contain key back until they are let go;
// with half, only the second half of the text.
func (m *mind) hold(key string, half bool) (letGo func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gate := make(chan struct{})
	m.gates[key], m.after[key] = gate, half
	return sync.OnceFunc(func() { close(gate) })
}

// Chat implements llm.Model.
func (m *mind) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	step, text := 0, ""
	for i := len(r.Messages) - 1; i >= 0 && text == ""; i-- {
		switch x := r.Messages[i]; x.Role {
		case llm.RoleAssistant:
			step++
		case llm.RoleUser:
			text = llm.Unwrap(x.Content)
		}
	}
	reply, gate, half := m.find(text, step)
	if reply.Err != nil {
		return llm.Response{}, reply.Err
	}
	if !half {
		if err := pass(ctx, gate); err != nil {
			return llm.Response{}, err
		}
	}
	if r.Delta != nil && reply.Text != "" {
		cut := len(reply.Text) / 2
		r.Delta(0, reply.Text[:cut])
		if half {
			if err := pass(ctx, gate); err != nil {
				return llm.Response{}, err
			}
		}
		r.Delta(cut, reply.Text[cut:])
	}
	reply.Model, reply.Usage = "script", claybot.Usage{Input: 10, Output: 2, Reasoning: 1, LLMCalls: 1}
	return reply.Response, nil
}

func (m *mind) find(text string, step int) (reply llmtest.Reply, gate chan struct{}, half bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, g := range m.gates {
		if strings.Contains(text, key) {
			gate, half = g, m.after[key]
		}
	}
	for key, plan := range m.plans {
		if strings.Contains(text, key) && step < len(plan) {
			return plan[step], gate, half
		}
	}
	return llmtest.Say("re: " + text), gate, half
}

func pass(ctx context.Context, gate chan struct{}) error {
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return &llm.Error{Class: llm.Transient, Text: ctx.Err().Error()}
	}
}
