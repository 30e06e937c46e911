package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/worker"
)

// maxStoryEvents is the maximum number of events in a story: the newest.
const maxStoryEvents = 2000

// A Story is the trace of one message.
type Story struct {
	storage.Receipt
	// Events are those of the run that took the message.
	Events []claybot.Event
	// Steps is the timeline, oldest first.
	Steps []Step
	// Silence is why there is no reply, as a text; empty if there is one or it is pending.
	Silence string
	// Fault is why the agent of an open message is unusable at present; empty if it is
	// usable, as far as this member knows.
	Fault string
	// Stopped is why an operator has stopped the agent of a waiting message, or what it works with; empty:
	// none has.
	Stopped string
	voice   texts.Voice // in English, in the zone of the readers
}

// Verdict returns the outcome of the message.
func (t Story) Verdict() Verdict {
	h := Free
	switch {
	case t.Fault != "":
		h = Unusable
	case t.Stopped != "":
		h = Stopped
	}
	return VerdictOf(t.voice, t.Receipt, h)
}

// A Step is one entry of a timeline.
type Step struct {
	At   claybot.Time  `json:"at"`
	What string        `json:"what"` // received, stored, waiting, run, model, tool, question, answer, reply, sent, failed, skipped …
	Text string        `json:"text"` // for display
	Run  claybot.RunID `json:"run,omitempty"`
	MS   int64         `json:"ms,omitempty"`
}

// Why returns the stories of the messages that ref names, oldest first: a platform's link
// to a message, or the id of a message, a run or an outgoing message. It returns
// storage.ErrNotFound if there are none.
func (o *Stories) Why(ctx context.Context, ref string) ([]Story, error) {
	ids, err := o.named(ctx, strings.TrimSpace(ref))
	if err != nil {
		return nil, err
	}
	var stories []Story
	for _, id := range ids {
		story, err := o.story(ctx, id)
		if errors.Is(err, storage.ErrNotFound) {
			continue // removed concurrently
		}
		if err != nil {
			return nil, err
		}
		stories = append(stories, story)
	}
	if len(stories) == 0 {
		return nil, fmt.Errorf("message %.200q: %w", ref, storage.ErrNotFound)
	}
	return stories, nil
}

// named finds the messages that a ref names, by id or as a link.
func (o *Stories) named(ctx context.Context, ref string) ([]claybot.MessageID, error) {
	if ref == "" {
		return nil, nil
	}
	refs := []string{ref}
	for _, c := range o.Connectors.All() {
		if l, ok := c.(connectors.Linker); ok {
			refs = append(refs, l.Refs(ref)...)
		}
	}
	var ids []claybot.MessageID
	for _, r := range refs {
		found, err := o.Inbox.FindMessages(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("find message: %w", err)
		}
		for _, id := range found {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// resent returns the receipt that read finds, with what its reader asked for again of replies that
// failed: that is stored with the command that asked.
func (c Config) resent(ctx context.Context, read func(context.Context, claybot.MessageID) (storage.Receipt, error), id claybot.MessageID) (storage.Receipt, error) {
	r, err := read(ctx, id)
	if err != nil {
		return r, err
	}
	for i := 0; i < len(r.Replies); i++ { // what was sent again may fail as well
		if r.Replies[i].State != claybot.SendFailed {
			continue
		}
		switch again, err := c.Outbox.OutgoingByID(ctx, delivery.AgainPrefix+r.Replies[i].ID); {
		case err == nil:
			r.Replies = append(r.Replies, again)
		case !errors.Is(err, storage.ErrNotFound):
			return r, fmt.Errorf("look for what was sent again: %w", err)
		}
	}
	return r, nil
}

func (o *Stories) story(ctx context.Context, id claybot.MessageID) (Story, error) {
	r, err := o.resent(ctx, o.Inbox.Receipt, id)
	if err != nil {
		return Story{}, err
	}
	t := Story{Receipt: r, voice: texts.Voice{Zone: o.Zone()}}
	if x, ok := o.Worker.Faults.OfAgent(r.Agent); ok && stillOpen(r) {
		t.Fault = x.Cause
	}
	if r.Run == nil && stillOpen(r) {
		if agent, err := o.Agents.Agent(ctx, r.Agent); err == nil { // otherwise the fault says it
			t.Stopped = o.Config.Stopped(worker.Asked(agent, r.Message))
		}
	}
	if r.Run != nil {
		after := max(0, r.Run.LastSeq-maxStoryEvents)
		for e, err := range o.Runs.Events(ctx, r.Run.ID, after) {
			if err != nil {
				return Story{}, fmt.Errorf("read the events of run %s: %w", r.Run.ID, err)
			}
			t.Events = append(t.Events, e)
		}
	}
	t.tell()
	if t.open() {
		node, err := o.Membership.HeldBy(ctx, t.Agent, o.Inboxes.Busy(t.Agent))
		if err != nil {
			return Story{}, err
		}
		t.where(node)
	}
	return t, nil
}

// tell fills in the steps of a story and why there is no reply.
func (t *Story) tell() {
	m := t.Message
	t.step(m.At, "received", textReceived(m, t.Stored))
	t.step(t.Stored, "stored", "made durable; from here on it is not lost")
	if m.Approved != 0 {
		t.step(m.Approved, "approved", "its sender, who was unknown until then, was given access; it is answered after that")
	}
	switch {
	case t.Skipped != "":
		t.step(t.Stored, "skipped", skippedWords(t.Skipped))
		t.Silence = skippedWords(t.Skipped)
	case t.Parked != "":
		t.step(0, "parked", t.parked())
	case t.Run == nil && t.Fault != "": // reported below
	case t.Run == nil:
		t.step(0, "waiting", t.waits())
	default:
		t.runSteps()
	}
	if t.Fault != "" {
		t.step(0, "waiting", "waits until its agent can be used again, and is retried until then: "+t.Fault)
	}
	for _, o := range t.Replies {
		t.reply(o)
	}
	slices.SortStableFunc(t.Steps, func(a, b Step) int {
		if a.At == 0 || b.At == 0 { // pending
			return int(min(b.At, 1) - min(a.At, 1))
		}
		return int(a.At - b.At)
	})
	if t.Run != nil && len(t.Replies) == 0 {
		t.Silence = silenceWords(*t.Run, m)
	}
}

func (t *Story) step(at claybot.Time, what, text string) {
	t.Steps = append(t.Steps, Step{At: at, What: what, Text: text})
}

// waits returns what a message waits for, as a text.
func (t *Story) waits() string {
	var all []string
	switch {
	case t.Paused != nil:
		all = append(all, "run "+string(t.Busy)+" of its agent is paused and waits for "+t.voice.WaitsFor(claybot.Run{Awaiting: t.Paused}))
	case t.Busy != "":
		all = append(all, "its agent works on run "+string(t.Busy))
	}
	if t.Ahead > 0 {
		all = append(all, earlier(t.Ahead))
	}
	switch {
	case t.Stopped != "":
		all = append(all, "its agent begins no run: "+t.Stopped)
	case t.Due > claybot.Now():
		all = append(all, "it is held back until "+t.voice.Moment(t.Due)+" for more to come")
	}
	if len(all) == 0 {
		return "waits for its turn, which comes at once"
	}
	return "waits: " + strings.Join(all, "; ")
}

// parked returns why a message is parked, as a text.
func (t *Story) parked() string {
	if t.Parked == storage.ParkedUnapproved {
		return "waits until an operator approves its sender, and is erased if none does"
	}
	s := "waits until its agent can be used again, and is retried until then: " + connectors.OneLine(t.Parked, 300)
	if t.Ahead > 0 {
		s += "; " + earlier(t.Ahead)
	}
	return s
}

// earlier returns how many messages wait before one, as a text.
func earlier(n int) string {
	if n == 1 {
		return "1 earlier message waits before it"
	}
	return fmt.Sprintf("%d earlier messages wait before it", n)
}

// runSteps adds the events of the run.
func (t *Story) runSteps() {
	began := false
	for _, e := range t.Events {
		what, text, ms := eventWords(t.voice, e)
		if what == "" {
			continue
		}
		began = began || e.Type == claybot.EventRunStarted
		t.Steps = append(t.Steps, Step{At: e.At, What: what, Text: text, Run: e.Run, MS: ms})
	}
	if !began { // its events were pruned
		t.Steps = append(t.Steps, Step{At: t.Run.Started, What: "run", Text: "run " + string(t.Run.ID) + " took it", Run: t.Run.ID})
		if t.Run.State.Ended() {
			t.Steps = append(t.Steps, Step{At: t.Run.Ended, What: "end", Text: "the run ended: " + string(t.Run.State), Run: t.Run.ID})
		}
	}
}

// reply adds the delivery state of an outgoing message.
func (t *Story) reply(o claybot.Outgoing) {
	part := ""
	if o.Parts > 1 {
		part = fmt.Sprintf(" (part %d of %d)", o.Part, o.Parts)
	}
	t.step(o.At, "reply", string(o.Kind)+part+" put into the outbox for "+o.Route.Connector)
	at := max(o.Tried, o.At)
	switch o.State {
	case claybot.SendSent:
		t.step(at, "sent", fmt.Sprintf("delivered%s; the platform calls it %s", part, o.Receipt))
	case claybot.SendFailed:
		t.step(at, "failed", fmt.Sprintf("given up%s after %d tries: %s", part, o.Attempts, o.Cause))
	case claybot.SendWaiting:
		t.step(0, "sending", strings.TrimSpace(fmt.Sprintf("waits to be sent%s, %d tries so far. %s", part, o.Attempts, o.Cause)))
	case claybot.SendAttempted, claybot.SendAmbiguous:
		t.step(at, "ambiguous", strings.TrimSpace("on its way"+part+"; whether it arrived is being found out. "+o.Cause))
	}
}

func textReceived(m claybot.AgentMessage, stored claybot.Time) string {
	from := m.From.Name
	if from == "" {
		from = m.From.UserID
	}
	if m.From.Agent != "" {
		from = "agent " + string(m.From.Agent)
	}
	if from == "" {
		from = "claybot"
	}
	late := ""
	if d := stored.Time().Sub(m.At.Time()); d.Seconds() >= 2 {
		late = ", " + d.Round(1e9).String() + " before it reached claybot"
	}
	if m.Request != "" {
		late += ", by the request " + m.Request
	}
	return fmt.Sprintf("%s message from %s%s", m.Type, connectors.OneLine(from, 80), late)
}

// skippedWords returns the text for a stored reason why a message was not handed to its
// agent.
func skippedWords(reason string) string {
	known := map[string]string{
		"command":                 texts.SkipCommand,
		"reset":                   texts.SkipReset,
		"empty":                   texts.SkipEmpty,
		"too_long":                texts.SkipTooLong,
		inbox.SkippedFull:         texts.SkipFull,
		storage.SkippedBusy:       texts.SkipBusy,
		storage.SkippedFlowFull:   texts.SkipFlowFull,
		storage.SkippedNewer:      texts.SkipNewer,
		inbox.SkippedFlood:        texts.SkipFlood,
		inbox.SkippedBot:          texts.SkipBot,
		"operator":                texts.SkipOperator,
		inbox.SkippedStopped:      texts.SkipStopped,
		"run_ended":               texts.SkipRunEnded,
		"token_rejected":          texts.SkipTokenRejected,
		"agent_deleted":           texts.SkipAgentDeleted,
		inbox.SkippedDamaged:      texts.SkipDamaged,
		inbox.SkippedRevoked:      texts.SkipRevoked,
		inbox.SkippedAccessDenied: texts.SkipAccessDenied,
		inbox.SkippedNotApproved:  texts.SkipNotApproved,
		storage.SkippedEdit:       texts.SkipEdit,
		storage.SkippedDeletion:   texts.SkipDeletion,
		storage.SkippedLate:       texts.SkipLate,
		storage.SkippedDeleted:    texts.SkipDeleted,
		questions.SkippedAnswer:   texts.SkipAnswer,
		questions.SkippedUnfit:    texts.SkipUnfit,
	}
	if words, ok := known[reason]; ok {
		return words
	}
	if name, ok := strings.CutPrefix(reason, storage.SkippedFlow); ok {
		return fmt.Sprintf(texts.SkipFlow, name)
	}
	return "not handed to the agent: " + reason
}

// skippedIn is skippedWords in the language of a voice.
func skippedIn(v texts.Voice, reason string) string {
	if name, ok := strings.CutPrefix(reason, storage.SkippedFlow); ok {
		return v.Say(texts.SkipFlow, name)
	}
	return v.In(skippedWords(reason))
}

// silenceWords returns why a run has no reply.
func silenceWords(run claybot.Run, m claybot.AgentMessage) string {
	switch {
	case !run.State.Ended():
		return ""
	case run.State == claybot.RunCanceled && run.Cancel != "":
		return canceledWords(run.Cancel)
	case run.State == claybot.RunCanceled:
		return texts.SilentCanceled
	case run.Silence == claybot.SilenceAutoSend:
		return texts.SilentAutoSend
	case run.State == claybot.RunSucceeded && (runs.IsNoReply(run.Output) || run.Output == ""):
		return texts.SilentNoReply
	case run.State == claybot.RunSucceeded:
		return texts.SilentHistory
	case m.Firing != nil && m.Firing.Quiet:
		return texts.SilentTold
	}
	return texts.SilentFailed
}

// canceledWords returns who stopped a run, for the stored word.
func canceledWords(by string) string {
	known := map[string]string{
		"user":              texts.StopUser,
		"reset":             texts.StopReset,
		people.Operator:     texts.StopOperator,
		subagents.ByParent:  texts.StopParent,
		questions.ByTime:    texts.StopByTime,
		questions.ByMessage: texts.StopByMessage,
	}
	if words, ok := known[by]; ok {
		return words
	}
	return "the run was stopped by " + by
}

// eventWords returns the text of an event; what is empty for events too minor to show.
func eventWords(v texts.Voice, e claybot.Event) (what, text string, ms int64) {
	switch e.Type {
	case claybot.EventRunStarted:
		return "run", "run " + string(e.Run) + " took it", 0
	case claybot.EventRunResumed:
		reason := runs.DataOf[runs.MessagesTaken](e).Reason
		if reason == "restart" { // of the process, or of the run after a fault
			reason = "it was interrupted"
		}
		return "run", "the run goes on: " + reason, 0
	case claybot.EventMessagesInjected:
		return "run", fmt.Sprintf("%d more messages joined the run", len(runs.DataOf[runs.MessagesTaken](e).Messages)), 0
	case claybot.EventAssistantMessage:
		d := runs.DataOf[runs.AssistantMessage](e)
		return "model", fmt.Sprintf("%s answered, with %d tool calls", orUnknown(d.Model), len(d.Calls)), d.MS
	case claybot.EventToolCalled:
		return "tool", runs.DataOf[runs.ToolStarted](e).Tool + " begins", 0
	case claybot.EventToolSucceeded:
		d := runs.DataOf[runs.ToolEnded](e)
		return "tool", d.Tool + " succeeded", d.MS
	case claybot.EventToolFailed:
		d := runs.DataOf[runs.ToolEnded](e)
		return "tool", d.Tool + " failed: " + connectors.OneLine(d.Error, 200), d.MS
	case claybot.EventToolWaiting:
		d := runs.DataOf[runs.ToolWaiting](e)
		return "tool", d.Tool + " waits: " + d.Reason, 0
	case claybot.EventAwaitingInput:
		d := runs.DataOf[runs.AwaitingInput](e)
		return "waiting", "the run waits for " + v.WaitsFor(claybot.Run{Awaiting: &claybot.Awaiting{
			Reason: d.Reason, Answers: d.Answers, Questions: d.Questions, Until: d.Expires,
		}}), 0
	case claybot.EventAnswered:
		return "answer", "a question was answered, via " + string(runs.DataOf[runs.Answered](e).Via), 0
	case claybot.EventContextCompacted:
		return "model", "older messages were folded into a summary", 0
	case claybot.EventSubagentStarted:
		return "tool", "started agent " + string(runs.DataOf[runs.SubagentStarted](e).Agent), 0
	case claybot.EventRunFinished:
		return "end", "the run succeeded", 0
	case claybot.EventRunFailed:
		d := runs.DataOf[runs.RunFailed](e)
		return "end", "the run failed (" + d.Code + "): " + connectors.OneLine(d.Error, 300), 0
	case claybot.EventRunCanceled:
		return "end", canceledWords(runs.DataOf[runs.RunCanceled](e).By), 0
	}
	return "", "", 0
}

func orUnknown(model string) string {
	if model == "" {
		return "the model"
	}
	return model
}

// where adds the member that works on the message, or on what it waits for.
func (t *Story) where(node string) {
	switch {
	case node == "":
	case t.Run != nil:
		t.Steps = append(t.Steps, Step{What: "node", Text: "node " + node + " works on it now", Run: t.Run.ID})
	default:
		t.Steps = append(t.Steps, Step{What: "node", Text: "node " + node + " has its agent now"})
	}
}

// open reports whether a member may work on the message, or on its agent, now.
func (t *Story) open() bool {
	if t.Run != nil {
		return !t.Run.State.Ended()
	}
	return t.Skipped == "" && t.Parked == ""
}
