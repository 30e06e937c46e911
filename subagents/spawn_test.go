package subagents

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// Answers that fit together stay as they are, also where one of them is longer than its share.
func TestFitAnswers(t *testing.T) {
	long, many := strings.Repeat("x", 600), make([]*claybot.Result, 10)
	for i := range many {
		many[i] = &claybot.Result{OK: true, Output: "short"}
	}
	many[3], many[7] = &claybot.Result{OK: true, Output: long}, nil
	for limit, whole := range map[int]bool{4000: true, 1600: false} {
		text, err := fitAnswers(many, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []*claybot.Result
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != len(many) || got[7] != nil {
			t.Fatalf("limit %d: %s, %v", limit, text, err)
		}
		if (got[3].Output == long) != whole || got[0].Output != "short" || len(text) > limit {
			t.Errorf("limit %d: %d bytes: %s", limit, len(text), text)
		}
	}
}

// few is an inbox with some messages.
type few struct {
	Inbox
	all map[claybot.MessageID]storage.Receipt
}

func (f few) Receipt(_ context.Context, id claybot.MessageID) (storage.Receipt, error) {
	r, ok := f.all[id]
	if !ok {
		return r, storage.ErrNotFound
	}
	return r, nil
}

// A task whose answer is there is not started again, also where the message with the task is deleted.
func TestAnsweredTaskIsNotStarted(t *testing.T) {
	env := tools.Env{Run: "r", CallID: "c"}
	answer := &claybot.Result{OK: true, AgentID: "one", Output: "done"}
	s := &Starter{starting: new(sync.Mutex), work: new(runs.AtWork), profile: func(claybot.Descriptor) string { return "default" }, inbox: few{all: map[claybot.MessageID]storage.Receipt{
		answerID(env, 0):   {Message: claybot.AgentMessage{Answer: answer}},
		taskID(env.UID(1)): {Agent: "two", Message: claybot.AgentMessage{Deadline: claybot.Now() + 1_000_000}},
	}}}
	s.permissions = func(context.Context, claybot.Agent) (p claybot.Permissions, err error) {
		t.Error("the task is started again")
		return p, storage.ErrNotFound
	}
	p, err := s.advance(t.Context(), env, []tools.Subagent{{Task: "a"}, {Task: "b"}}, tools.Spawning{})
	if err != nil || p.ended[0] != answer || p.ended[1] != nil || len(p.open) != 1 || p.open[1] != "two" {
		t.Errorf("%+v, %v", p, err)
	}
}
