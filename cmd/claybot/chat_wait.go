package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
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
	ended claybot.EventType
	quiet bool   // the run ended without a reply
	reply string // the newest answer of the run
	said  bool
	// notice is what claybot itself said last in the run: its end when it
	// failed, a word in between when it goes on.
	notice  string
	noticed bool
	// A run that asks has said what it has to say until somebody answers: open
	// are the messages that ask, put those of them that were shown.
	open []string
	put  map[string]string
	// early is what runs have said of which it is not known yet whether they took
	// the message: what another node's run does is heard after what it says, perhaps.
	early map[claybot.RunID][]saidFrame
}

// mostEarly bounds of how many runs that is kept.
const mostEarly = 64

// newWait follows the message that a text became. What stands behind /new is a
// message of its own.
func newWait(id claybot.MessageID, text string) *wait {
	m, _ := connectors.Interpret(claybot.AgentMessage{Type: claybot.MessageUser, Text: text}, "/", "")
	if m.Type == claybot.MessageReset && m.Text != "" {
		return &wait{id: claybot.AgentMessage{ID: id}.FollowUp().ID}
	}
	return &wait{id: id, order: m.Type != claybot.MessageUser}
}

// see takes one event and reports whether the message has its end.
func (w *wait) see(ev event) (done bool, reply string, failed bool) {
	switch ev.name {
	case "message":
		var s saidFrame
		if json.Unmarshal(ev.data, &s) != nil {
			return false, "", false
		}
		if w.order && s.Run == "" && s.Kind == claybot.OutgoingCommand {
			return true, s.Text, false
		}
		switch {
		case s.Shown != "":
		case !w.order && w.run == "" && s.Message == w.id && s.Kind == claybot.OutgoingNotice && (s.Run == "" || strings.HasPrefix(s.ID, unfitPrefix)):
			return true, s.Text, false // no run takes it: claybot itself has answered
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
		var e claybot.Event
		if json.Unmarshal(ev.data, &e) == nil {
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

// hear takes what a run said.
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

// questionPrefix begins the ids of messages that ask something.
const questionPrefix = "question/"

// unfitPrefix begins the ids of notices that a message is no answer to what was asked.
const unfitPrefix = "unfit/"

// asked reports whether the run waits for an answer to what was shown, and what
// that is.
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
		var d runs.Answered
		if json.Unmarshal(e.Data, &d) == nil && d.MessageID == w.id {
			w.run = e.Run
		}
	case claybot.EventAwaitingInput:
		var d runs.AwaitingInput
		if e.Run != w.run || json.Unmarshal(e.Data, &d) != nil {
			return
		}
		for _, q := range d.Questions {
			w.open = append(w.open, questionPrefix+q.ID+"/1")
		}
	case claybot.EventRunStarted, claybot.EventRunResumed, claybot.EventMessagesInjected:
		if e.Run == w.run {
			w.open = nil // whatever it asked has its answer
		}
		var d runs.MessagesTaken
		if json.Unmarshal(e.Data, &d) == nil && slices.Contains(d.Messages, w.id) {
			w.run = e.Run
		}
	case claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled:
		if e.Run != w.run {
			return
		}
		var d runs.RunFinished // a run that was stopped has its output under the same name
		w.ended = e.Type
		w.quiet = e.Type != claybot.EventRunFailed && json.Unmarshal(e.Data, &d) == nil && d.Output == ""
	}
}

// stillAfter is how long the terminal shows nothing after a message until a sign of life,
// as in a chat.
const stillAfter = 15 * time.Second

// await waits for the reply to a message that was just sent.
func (t *talk) await(w *wait) {
	t.waits, t.wrote = append(t.waits, w), false
	t.still.Reset(stillAfter)
}

// works notes which tool a run uses.
func (t *talk) works(e claybot.Event) {
	switch e.Type {
	case claybot.EventToolCalled:
		var d runs.ToolStarted
		if json.Unmarshal(e.Data, &d) == nil {
			t.using = d.Tool
		}
	case claybot.EventToolSucceeded, claybot.EventToolFailed, claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled:
		t.using = ""
	}
}

// sign says that claybot is at work, where nothing was printed since a message was sent.
func (t *talk) sign() {
	if len(t.waits) > 0 && !t.wrote && !t.away {
		fmt.Fprintln(t.errs, plain(texts.StillWorking(t.using)))
	}
}
