package main

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// wrapped are messages as agents show them to a model.
func wrapped(records ...claybot.Record) []llm.Message { return llm.Messages(records) }

func userSays(text string) claybot.Record {
	return claybot.Record{Type: claybot.RecordUser, Text: text, From: &claybot.Sender{UserID: "1"}}
}

func agentSays(text string) claybot.Record {
	return claybot.Record{Type: claybot.RecordSystem, Text: text, Origin: "x", Kind: claybot.KindResult}
}

func TestOrders(t *testing.T) {
	for _, tt := range []struct {
		text    string
		jobs    []string
		awaited bool
		calls   int
	}{
		{"please answer m1-1", nil, false, 0},
		{"please answer m1-1 start=c1:ok", []string{"c1:ok"}, false, 1},
		{"start=c1:bad", []string{"c1:bad"}, false, 1},
		{"spawn=c1.1:ok,c1.2:bad", []string{"c1.1:ok", "c1.2:bad"}, true, 1},
		{"burst=b:3", []string{"b.0:ok", "b.1:ok", "b.2:ok"}, false, 3},
		{"burst=b:many", nil, false, 0},
		{"restart=c1:ok", nil, false, 0},
	} {
		t.Run(tt.text, func(t *testing.T) {
			all := orders(tt.text)
			var jobs []string
			for _, o := range all {
				for _, j := range o.jobs {
					jobs = append(jobs, j.String())
				}
				if o.awaited != tt.awaited {
					t.Errorf("awaited is %v", o.awaited)
				}
			}
			if !slices.Equal(jobs, tt.jobs) || len(all) != tt.calls {
				t.Errorf("got %d orders for %q", len(all), jobs)
			}
		})
	}
	bad := 0
	for _, o := range orders("burst=b:100") {
		if o.jobs[0].fails {
			bad++
		}
	}
	if bad != 10 {
		t.Errorf("%d of 100 jobs fail, want 10", bad)
	}
}

// The emulated model carries an order out once, then answers with what came of
// it, and tells what it heard.
func TestActor(t *testing.T) {
	a := newActor(0, 0, 0)
	history := []claybot.Record{userSays("please answer m1-1"), userSays("please answer m1-2 start=c1:ok spawn=c2.1:ok,c2.2:bad")}
	first := a.reply(openaitest.Request{Messages: wrapped(history...)})
	if len(first.Calls) != 2 || first.Calls[0].Name != "start_subagent" || first.Calls[1].Name != "spawn_and_wait" {
		t.Fatalf("first answer: %+v", first)
	}
	history = append(
		history,
		claybot.Record{Type: claybot.RecordAssistant, ToolCalls: first.Calls},
		claybot.Record{Type: claybot.RecordTool, ToolCallID: first.Calls[0].ID, OK: true, Text: "agent x started"},
		claybot.Record{Type: claybot.RecordTool, ToolCallID: first.Calls[1].ID, OK: true, Text: `[{"ok":true,"output":"did c2.1"},{"ok":false,"error":"no"}]`},
	)
	second := a.reply(openaitest.Request{Messages: wrapped(history...)})
	if want := "re m1-1 m1-2, c2.1=ok, c2.2=failed, started 1"; second.Text != want || len(second.Calls) > 0 {
		t.Errorf("second answer: got %q, want %q", second.Text, want)
	}
	history = append(
		history,
		claybot.Record{Type: claybot.RecordAssistant, Text: second.Text},
		agentSays("did c1"), agentSays(`The subagent "c9" (id y) failed in run r: model_refused: no`),
	)
	third := a.reply(openaitest.Request{Messages: wrapped(history...)})
	if want := "re, heard that c1 ended, heard that c9 failed"; third.Text != want {
		t.Errorf("third answer: got %q, want %q", third.Text, want)
	}
	refused := a.reply(openaitest.Request{Messages: wrapped(
		history[1], claybot.Record{Type: claybot.RecordAssistant, ToolCalls: first.Calls},
		claybot.Record{Type: claybot.RecordTool, ToolCallID: first.Calls[0].ID, Text: "too many"},
		claybot.Record{Type: claybot.RecordTool, ToolCallID: first.Calls[1].ID, Text: "[]"},
	)})
	if want := "re m1-2, c1 was refused: too many, c2.1 was refused: []"; refused.Text != want {
		t.Errorf("refused calls: got %q, want %q", refused.Text, want)
	}
}

// The emulated model does the work of background agents, or refuses it.
func TestActorWorks(t *testing.T) {
	a := newActor(0, 0, 0)
	for _, tt := range []struct {
		name, text string
		want       openaitest.Reply
	}{
		{"subagent", "work c1:ok", openaitest.Reply{Text: "did c1"}},
		{"refused", "work c2:bad", openaitest.Reply{Fault: openaitest.FaultBadRequest}},
		{"task", "The task once1 is due.\n\nwork once1:ok\n\nIts memory is empty.", openaitest.Reply{Text: "did once1"}},
		{"said by a person in a line", "I work c1:ok", openaitest.Reply{Text: "re"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := a.reply(openaitest.Request{Messages: wrapped(agentSays(tt.text))})
			if got.Text != tt.want.Text || got.Fault != tt.want.Fault {
				t.Errorf("got %+v", got)
			}
		})
	}
	if a.count() != 3 {
		t.Errorf("%d jobs were counted, want 3", a.count())
	}
	for what, moments := range map[string]<-chan time.Time{"began": a.begun, "was refused": a.refused} {
		select {
		case <-moments:
		default:
			t.Errorf("there is no report that work %s", what)
		}
	}
}

// A kill counts once for each phase that something is in at that moment.
func TestMoments(t *testing.T) {
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	var m moments
	m.note(starting, at(0), 10*time.Millisecond)
	m.note(working, at(5), 10*time.Millisecond)
	m.note(working, at(6), 10*time.Millisecond)
	m.note(failing, at(20), 10*time.Millisecond)
	m.kill(at(8))
	m.kill(at(8)) // what it would meet ended with the first
	m.note(telling, at(30), 10*time.Millisecond)
	m.kill(at(29))
	if got, want := m.String(), "1 starting, 1 working, 0 failing, 0 telling"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
