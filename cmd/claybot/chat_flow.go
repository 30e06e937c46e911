package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// lookFlows is how often a chat asks what became of messages that workflows may have taken: their runs
// are not those of the conversation, and its stream has no events of them.
const lookFlows = time.Second

// ofFlows returns the events of the workflows that have taken messages without an end.
func (t *talk) ofFlows(ctx context.Context) (all []api.Frame) {
	for _, w := range t.waits {
		if w.order || w.run != "" && !w.flow {
			continue
		}
		for _, r := range t.receipts(ctx, w.id) {
			if r.Kind == claybot.KindTrigger {
				w.flow = true
				all = append(all, flowEvents(r)...)
			}
		}
	}
	return all
}

// receipts returns what became of a message; none if the daemon does not say it now.
func (t *talk) receipts(ctx context.Context, id claybot.MessageID) []web.ReceiptView {
	ctx, cancel := context.WithTimeout(ctx, againTime)
	defer cancel()
	var told web.ReceiptList
	if t.client.call(ctx, http.MethodGet, "/receipts?"+url.Values{"message": {string(id)}}.Encode(), nil, &told) != nil {
		return nil
	}
	return slices.DeleteFunc(told.Receipts, func(r web.ReceiptView) bool { return r.Message != id })
}

// flowEvents returns the events behind the receipt of a message that a workflow has taken: what it said in the
// terminal, and its end. A run that waits for a time or a program has said what it says for now.
func flowEvents(r web.ReceiptView) (all []api.Frame) {
	said := func(s saidFrame) {
		data, _ := json.Marshal(s) // texts always encode
		all = append(all, api.Frame{Name: "message", Data: data})
	}
	if r.Run == nil {
		if r.Skipped != "" {
			said(saidFrame{Kind: claybot.OutgoingNotice, Message: r.Message, Text: r.Verdict.Text})
		}
		return all
	}
	event := func(t claybot.EventType, facts any) {
		data, _ := json.Marshal(facts)
		frame, _ := json.Marshal(claybot.Event{Type: t, Run: r.Run.ID, Data: data})
		all = append(all, api.Frame{Name: "event", Data: frame})
	}
	event(claybot.EventRunStarted, runs.MessagesTaken{Messages: []claybot.MessageID{r.Message}})
	var answers []string
	noticed := false
	for _, o := range r.Replies {
		switch {
		case o.Route.Connector != "terminal":
		case strings.HasPrefix(o.ID, questionPrefix), o.Kind == claybot.OutgoingNotice:
			noticed = noticed || o.Kind == claybot.OutgoingNotice && !strings.HasPrefix(o.ID, questionPrefix)
			said(saidFrame{ID: asksOnce(o.ID), Kind: o.Kind, Run: r.Run.ID, Message: o.Message, Text: o.Text})
		case o.Kind == claybot.OutgoingAnswer:
			answers = append(answers, o.Text)
		}
	}
	text := strings.Join(answers, "\n\n")
	if text != "" {
		said(saidFrame{Kind: claybot.OutgoingAnswer, Run: r.Run.ID, Text: text})
	}
	wait := r.Run.Awaiting
	switch {
	case r.Run.State == claybot.RunFailed:
		if !noticed {
			said(saidFrame{Kind: claybot.OutgoingNotice, Run: r.Run.ID, Text: r.Verdict.Text})
		}
		event(claybot.EventRunFailed, struct{}{})
	case r.Run.State == claybot.RunCanceled:
		event(claybot.EventRunCanceled, runs.RunCanceled{Output: text})
	case r.Run.State == claybot.RunSucceeded, wait != nil && (wait.Reason == claybot.AwaitTime || wait.Reason == claybot.AwaitCallback):
		event(claybot.EventRunFinished, runs.RunFinished{Output: text})
	case wait != nil && len(wait.Questions) > 0:
		event(claybot.EventAwaitingInput, runs.AwaitingInput{Questions: wait.Questions})
	}
	return all
}

// asksOnce is the id of a question without the number of the place where a workflow asks it: question/ID@1/1.
func asksOnce(id string) string {
	if at := strings.IndexByte(id, '@'); at >= 0 && strings.HasPrefix(id, questionPrefix) {
		return id[:at] + id[max(at, strings.LastIndexByte(id, '/')):]
	}
	return id
}
