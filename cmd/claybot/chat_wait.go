package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// A wait follows one message to its reply. Several messages may end with one
// run and one reply.
type wait struct {
	id    claybot.MessageID
	order bool // a command, which no run takes
	run   claybot.RunID
	flow  bool // a workflow has taken it, see ofFlows
	ended claybot.EventType
	quiet bool   // the run ended without a reply
	reply string // the newest answer of the run
	said  bool
	// notice is the last notice of claybot itself in the run: its failure, or one in
	// between.
	notice  string
	noticed bool
	// A run that asks is done until it gets answers: open are the IDs of the messages
	// that ask, put the texts of those that were shown.
	open []string
	put  map[string]string
	// budget: one of them is about a budget that is used up, so that no model is asked.
	budget bool
	// early are texts of runs that may turn out to have taken the message: the events of
	// another member may arrive after its texts.
	early map[claybot.RunID][]saidFrame
}

// mostEarly bounds the runs in early.
const mostEarly = 64

// newWait follows the message of a text. The text after /new is a message of its own.
func newWait(id claybot.MessageID, text string) *wait {
	m, _ := connectors.Interpret(claybot.AgentMessage{Type: claybot.MessageUser, Text: text, FirstHand: true}, "/", "")
	if m.Type == claybot.MessageReset && m.Text != "" {
		return &wait{id: claybot.AgentMessage{ID: id}.FollowUp().ID}
	}
	return &wait{id: id, order: m.Type != claybot.MessageUser}
}

// see processes one event and reports whether the message has its end.
func (w *wait) see(ev api.Frame) (done bool, reply string, failed bool) {
	switch ev.Name {
	case "message":
		s, ok := decode[saidFrame](ev.Data)
		if !ok {
			return false, "", false
		}
		if s.Run == "" && s.Kind == claybot.OutgoingCommand && (w.order || w.run == "" && s.Message == w.id) { // else an unknown command
			return true, s.Text, false
		}
		switch {
		case s.Shown != "":
		case !w.order && w.run == "" && s.Message == w.id && s.Kind == claybot.OutgoingNotice && (s.Run == "" || strings.HasPrefix(s.ID, unfitPrefix)):
			return true, s.Text, false // no run takes it: claybot itself replied
		case s.Run == "":
		case w.run == "":
			if w.early == nil || len(w.early) >= mostEarly {
				w.early = make(map[claybot.RunID][]saidFrame)
			}
			w.early[s.Run] = append(w.early[s.Run], s)
		default:
			w.hear(s)
		}
	case "event":
		if e, ok := decode[claybot.Event](ev.Data); ok {
			w.event(e)
		}
		if w.run != "" {
			for _, s := range w.early[w.run] {
				w.hear(s)
			}
			w.early = nil
		}
	}
	if text, asked := w.asked(); asked {
		return true, text, false
	}
	if w.ended == claybot.EventRunFailed {
		return w.noticed, w.notice, true
	}
	done = w.ended != "" && (w.said || w.quiet)
	return done, w.reply, w.ended != claybot.EventRunFinished
}

// hear processes a text of a run.
func (w *wait) hear(s saidFrame) {
	switch {
	case s.Run != w.run:
	case strings.HasPrefix(s.ID, questionPrefix):
		if w.put == nil {
			w.put = make(map[string]string)
		}
		w.put[s.ID] = s.Text
	case s.Kind == claybot.OutgoingNotice:
		w.notice, w.noticed = s.Text, true
	default:
		w.reply, w.said = s.Text, true
	}
}

// questionPrefix is the prefix of the IDs of questions.
const questionPrefix = "question/"

// unfitPrefix is the prefix of the IDs of notices that a message is not a valid answer.
const unfitPrefix = "unfit/"

// asked returns the questions that the run waits for, once all were shown.
func (w *wait) asked() (text string, ok bool) {
	var texts []string
	for _, id := range w.open {
		text, shown := w.put[id]
		if !shown {
			return "", false
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n\n"), len(texts) > 0
}

func (w *wait) event(e claybot.Event) {
	switch e.Type {
	case claybot.EventAnswered:
		if d, ok := decode[runs.Answered](e.Data); ok && d.MessageID == w.id {
			w.run = e.Run
		}
	case claybot.EventAwaitingInput:
		d, _ := decode[runs.AwaitingInput](e.Data)
		for _, q := range d.Questions {
			if e.Run == w.run {
				w.open = append(w.open, questionPrefix+q.ID+"/1")
				_, budget := runs.BudgetAskOf(q)
				w.budget = w.budget || budget
			}
		}
	case claybot.EventRunStarted, claybot.EventRunResumed, claybot.EventMessagesInjected:
		if e.Run == w.run {
			w.open, w.budget = nil, false // its questions have their answers
		}
		if d, ok := decode[runs.MessagesTaken](e.Data); ok && slices.Contains(d.Messages, w.id) {
			w.run = e.Run
		}
	case claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled:
		if e.Run != w.run {
			return
		}
		d, ok := decode[runs.RunFinished](e.Data) // a stopped run has its output under the same name
		w.ended, w.quiet = e.Type, e.Type != claybot.EventRunFailed && ok && d.Output == ""
	}
}

// stillAfter is how long the terminal shows nothing after a message before a sign of life.
const stillAfter = 15 * time.Second

// await waits for the reply to a message.
func (t *talk) await(w *wait) {
	t.waits, t.wrote = append(t.waits, w), false
	t.still.Reset(stillAfter)
}

// works tracks which tool a run uses.
func (t *talk) works(e claybot.Event) {
	switch e.Type {
	case claybot.EventToolCalled:
		if d, ok := decode[runs.ToolStarted](e.Data); ok {
			t.using = d.Tool
		}
	case claybot.EventToolSucceeded, claybot.EventToolFailed, claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled:
		t.using = ""
	}
}

// sign says that claybot is still working, or why it does not begin, if nothing was printed since the
// last message.
func (t *talk) sign(ctx context.Context) {
	if len(t.waits) > 0 && !t.wrote && !t.place.away {
		fmt.Fprintln(t.errs, plain(cmp.Or(t.held(ctx), texts.Voice{}.StillWorking(t.using))))
	}
}

// held says why the newest message waits; empty: a run has it, or the daemon does not say it.
func (t *talk) held(ctx context.Context) string {
	w := t.waits[len(t.waits)-1]
	if w.run != "" || w.flow {
		return ""
	}
	for _, r := range t.receipts(ctx, w.id) {
		if r.Run == nil {
			return r.Verdict.Text
		}
	}
	return ""
}
