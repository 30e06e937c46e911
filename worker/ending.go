package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// An ending ends a run: the outcome with its replies, the messages to other agents that
// commit with it, and the steps after the commit.
type ending struct {
	job    *job
	worker *Worker
	talk   *conversation
	tally  *tally
	answer *answer
	events *eventBuffer
	view   *progressView
	again  []storage.Posting // messages that are posted again because the run is given up
}

// end ends the run for the reason err gives, nil for success. An error means that the
// run did not end: the process is stopping, the lease is lost, or the store failed.
func (e *ending) end(err error) error {
	var canceled *inbox.CanceledError
	var failed *runs.Error
	switch {
	case err == nil:
		o := e.succeeded()
		err := e.finish(o)
		if errors.Is(err, storage.ErrCanceled) { // canceled before the commit
			e.events.add(o.Events[:len(o.Events)-1]...) // all but the success stays true
			return e.tooLate()
		}
		return err
	case errors.As(err, &canceled):
		return e.canceled(canceled)
	case errors.As(err, &failed):
		return e.finish(e.failed(failed))
	}
	return err
}

// succeeded returns the outcome of a successful run: its last text is the reply.
func (e *ending) succeeded() storage.Outcome {
	text := e.answer.text()
	o := storage.Outcome{State: claybot.RunSucceeded, Output: runs.Preview(text)}
	if runs.IsNoReply(text) || strings.TrimSpace(text) == "" {
		text = ""
	}
	said := text
	if before := e.saidBefore(); said == "" && before != "" {
		said, o.Output = before, runs.Preview(before)
	}
	if e.job.unsent() && text != "" {
		if text = ""; !e.answer.sent {
			o.Silence = claybot.SilenceAutoSend
		}
	}
	f := e.job.firing()
	if f != nil && f.Late != "" && text != "" {
		text += "\n\n*(" + f.Late + ")*"
	}
	o.Replies = e.reply(claybot.OutgoingAnswer, text)
	if f != nil && f.Recovered {
		o.Replies = append(o.Replies, e.worker.parts.Deliverer.Compose(e.job.outgoing(claybot.OutgoingNotice), e.job.voice().Recovered(e.job.agent.Descriptor.Name))...)
	}
	e.offerUndo(o.Replies)
	if len(o.Replies) > 0 {
		o.Replies = append(o.Replies, e.spoken(text)...)
	}
	o.Events = e.events.closing(runs.Finished(e.job.run.ID, said, e.tally.usage))
	return o
}

// saidBefore is what a run sent last whose engine speaks before the end.
func (e *ending) saidBefore() string {
	s, ok := e.worker.engines.named(e.job.engine()).(runs.Speaker)
	if !ok {
		return ""
	}
	return s.Said(e.job.box.Context(), e.turn())
}

// turn is the run with what it remembers.
func (e *ending) turn() *runs.Turn {
	return &runs.Turn{Run: e.job.run, Agent: e.job.agent, History: e.talk.remembered(), Messages: e.job.messages}
}

// failed returns the outcome of a failed run: one sentence for the user, the details for
// the operator.
func (e *ending) failed(err *runs.Error) storage.Outcome {
	e.job.log.Warn("run failed", "code", err.Code, "err", err.Text)
	why := runs.Explain(err)
	o := storage.Outcome{
		State:  claybot.RunFailed,
		Error:  &why,
		Events: e.events.closing(runs.Failed(e.job.run.ID, why, e.answer.step)),
	}
	text := e.job.voice().Failed(err.Code)
	if err.Say != "" {
		text = err.Say
	} else if cause := e.advice(err); cause != "" {
		text += "\n\n" + cause
	}
	if f := e.job.firing(); f != nil {
		if f.Quiet {
			text = ""
		} else {
			text = e.job.voice().TaskFailed(e.job.agent.Descriptor.Name, text)
		}
	}
	if e.job.awaited() {
		text = "" // the run that waits reads it in the answer
	}
	begun := e.begun()
	if err == errInterrupted && !e.giveUp(e.job.box.Context()) && begun == "" {
		text = "" // all messages are posted again
	}
	if begun != "" && text != "" {
		text = strings.TrimSpace(begun + "\n\n" + text)
	}
	o.Replies = e.reply(claybot.OutgoingNotice, text)
	e.offerUndo(o.Replies)
	return o
}

// advice returns the cause of a failed run and the next step, for an operator in a
// private chat; empty otherwise.
func (e *ending) advice(err *runs.Error) string {
	if len(e.job.messages) == 0 || !e.worker.parts.People.ReadsCauses(e.job.agent, e.job.work().Newest()) {
		return ""
	}
	return e.worker.AdviceOn(e.job.voice(), e.job.agent, err)
}

// tooLate ends a run as canceled although it was about to succeed.
func (e *ending) tooLate() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.job.box.Context()), storeTime)
	defer cancel()
	run, err := e.worker.stores.Reader.Run(ctx, e.job.run.ID)
	if err != nil {
		return err
	}
	return e.canceled(&inbox.CanceledError{By: run.Cancel})
}

// canceled ends a stopped run. The user who stopped it already has a reply; the partial
// answer is kept.
func (e *ending) canceled(c *inbox.CanceledError) error {
	ctx := context.WithoutCancel(e.job.box.Context())
	partial, err := e.keepPartial(ctx, c.By)
	if err != nil {
		return err
	}
	if e.talk.history != nil { // otherwise the history cannot be read
		if err := e.talk.append(ctx, e.job.note("info", c.Error())); err != nil {
			return err
		}
	}
	e.job.run.Cancel = c.By
	o := storage.Outcome{State: claybot.RunCanceled, Output: runs.Preview(partial), Replies: e.stoppedReply(partial)}
	said := ""
	if len(o.Replies) > 0 {
		said = partial
	}
	o.Events = e.events.closing(runs.Stopped(e.job.run.ID, c.By, said))
	return e.finish(o)
}

// keepPartial records the partial answer of a stopped run, marked as stopped, and returns
// it; empty if there is none. It is an assistant record, so that the page shows it after a
// reload and the model knows what the user has read. After a reset it records nothing.
func (e *ending) keepPartial(ctx context.Context, by string) (string, error) {
	if by == "reset" || e.talk.history == nil || !e.talk.repaired {
		return "", nil
	}
	text := e.answer.unrecorded()
	if text != "" && !runs.IsNoReply(text) && !runs.MayBeNoReply(text) {
		err := e.talk.record(ctx, claybot.Record{
			Type: claybot.RecordAssistant, At: claybot.Now(), Run: e.job.run.ID, Step: e.answer.step + 1,
			Text: text + "\n\n" + texts.MarkStopped, Stop: "canceled",
		})
		if err != nil {
			return "", err
		}
	}
	return e.answer.partial(e.job.voice().In(texts.MarkStopped)), nil
}

// stoppedReply returns the final form of a stopped answer: its text replaces a visible
// draft, and a passing one becomes a message, except behind a reset.
func (e *ending) stoppedReply(partial string) []claybot.Outgoing {
	begun := e.begun()
	d := e.view.visible()
	message := d != nil && d.Receipt != ""
	passing := d == nil && (begun != "" || e.view.show.preview != nil)
	switch {
	case (message || passing) && partial != "":
		return e.reply(claybot.OutgoingAnswer, partial)
	case message, passing && begun != "" && e.job.run.Cancel != "reset":
		return e.reply(claybot.OutgoingNotice, strings.TrimSpace(begun+"\n\n"+e.job.voice().In(texts.MarkStopped)))
	}
	return nil
}

// begun returns the unfinished text that the reader sees: in full if it disappears with the
// run, and as it was sent if it is a message.
func (e *ending) begun() string {
	begun := e.view.shown()
	if e.view.visible() != nil || begun == "" && e.view.show.preview == nil {
		return begun
	}
	if text := e.answer.unrecorded(); text != "" && !runs.MayBeNoReply(text) {
		return text
	}
	return begun
}

func (e *ending) reply(kind claybot.OutgoingKind, text string) []claybot.Outgoing {
	o, short, files := e.job.outgoing(kind), text, []claybot.FileReference(nil)
	if kind == claybot.OutgoingAnswer {
		short, files = e.snippets(text)
	}
	out := withFiles(e.view.reply(o, short), files)
	if len(out) > maxReplyParts { // its beginning names no files of code: all of it is in one
		if all, ok := e.inFile(e.view.reply(o, text), text); ok {
			out = all
		}
	}
	for i := range out {
		out[i].Once = kind == claybot.OutgoingAnswer && e.once()
	}
	return out
}

// once reports whether a second copy of the answer is worse than none, see
// claybot.Outgoing.Once. A notice is harmless to repeat, and nothing else reports its loss.
func (e *ending) once() bool { return e.job.agent.Descriptor.Scheduled() || e.tally.acted }

// offerUndo adds an undo button to the last message of a plan with side
// effects.
func (e *ending) offerUndo(out []claybot.Outgoing) {
	if len(out) == 0 || !e.tally.undoable() || e.job.engine() != claybot.EnginePlan {
		return
	}
	last := &out[len(out)-1]
	for i := len(out) - 1; last.File != nil && i > 0; i-- {
		last = &out[i-1] // the words to the files, because files take no buttons
	}
	last.Offer = append(last.Offer, claybot.Offer{Label: e.job.voice().In(texts.UndoButton), Command: "/undo " + string(e.job.run.ID)})
}

// finish commits the end of the run, releases the agent, and passes the replies to
// the deliverer.
func (e *ending) finish(o storage.Outcome) error {
	s, j := e.worker, e.job
	e.view.close()
	// The run's own context may be done; its end must be recorded anyway.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.box.Context()), storeTime)
	defer cancel()
	if o.Records = e.talk.deferred(); e.talk.history != nil && len(o.Records.Records) == 0 && o.State == claybot.RunFailed {
		if err := e.talk.history.Append(ctx); err != nil { // before its first record, its messages are only buffered
			return err
		}
	}
	withdrawn, err := s.parts.Questions.Notices.Withdrawn(ctx, e.talk.unanswered())
	if err != nil {
		return err
	}
	o.Replies = append(o.Replies, withdrawn...)
	o.Replies = append(o.Replies, e.marks(o.State)...)
	o.Usage, o.Calls = e.tally.usage, e.tally.calls
	o.Engine, o.Result, o.Undo, o.UndoOf = j.engine(), e.talk.result(), e.tally.effects, j.undoes()
	o.Wait, o.End = s.parts.Profiles.WaitOf(j.agent.ID, j.agent.Descriptor), storage.EndOf(ctx, e.talk.history)
	s.saveState(ctx, j, e.tally)
	result := e.result(o)
	ids := make([]claybot.MessageID, len(j.messages))
	for i, m := range j.messages {
		ids[i] = m.ID
	}
	var doomed []claybot.MessageID
	if result.Err != nil { // before the agent continues with them
		doomed = s.parts.DropDoomed(j.agent.ID, ids)
		defer s.parts.Waiters.Ended(inbox.Result{Err: inbox.ErrDropped}, doomed...) // also if the end cannot be committed
	}
	sending := s.parts.Deliverer.Reserve(ctx, o.Replies)
	defer sending.Hand(nil)
	o.Sending = sending.Claim()
	out, err := e.commit(ctx, o)
	if unsure(err) && s.members.Retries(err) {
		if out, err = e.commitAgain(o); err == nil {
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), storeTime)
			defer cancel()
		}
	}
	if err != nil {
		return err
	}
	e.talk.settle(o.Records)
	sending.Hand(out)
	if o.State != claybot.RunSucceeded {
		s.parts.Subagents.StopAwaited(ctx, j.agent.ID, j.run.ID)
	}
	e.notifyFollower(o)
	e.events.show(o.Events...)
	j.log.Debug("run ended", "state", o.State, "cost", e.tally.usage.CostMicroUSD)
	s.parts.Waiters.EndedWith(result, ids, doomed)
	return nil
}

// marks tells on the messages of the run how it ended.
func (e *ending) marks(state claybot.RunState) []claybot.Outgoing {
	a := e.job.profile.Acknowledge
	key, emoji, was := string(e.job.run.ID)+"/ended", "", a.All()
	switch state {
	case claybot.RunSucceeded:
		emoji = a.Done
	case claybot.RunFailed:
		emoji = a.Failed
	}
	return e.worker.parts.Deliverer.Marks(e.job.agent, e.job.run.ID, key, emoji, was, e.job.messages...)
}

// commit commits the end of the run together with its messages to other agents. An agent
// that is deleted in between gets none.
func (e *ending) commit(ctx context.Context, o storage.Outcome) ([]claybot.Outgoing, error) {
	s, j := e.worker, e.job
	for range 3 {
		var err error
		if o.Posts, err = e.posts(ctx, o); err != nil {
			return nil, err
		}
		out, err := s.stores.Runs.Finish(ctx, j.box.Lease, j.run.ID, o)
		if !errors.Is(err, storage.ErrNotFound) || len(o.Posts) == 0 {
			if err == nil && len(o.Posts) > 0 {
				s.parts.Boxes.Wake()
			}
			return out, err
		}
	}
	j.log.Error("no recipient for the end of the run")
	o.Posts = nil
	return s.stores.Runs.Finish(ctx, j.box.Lease, j.run.ID, o)
}

// unsure reports whether a commit that returned err may have happened.
func unsure(err error) bool {
	return errors.Is(err, storage.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

// asStored returns text as the store returns it: JSON replaces invalid UTF-8.
func asStored(text string) string {
	var back string
	b, err := json.Marshal(text)
	if err != nil || json.Unmarshal(b, &back) != nil {
		return text
	}
	return back
}

// commitAgain retries a commit with an unknown outcome until the store answers or a
// shutdown begins. A refusal because the first commit gave up the lease counts as
// success. No other worker would take the steps that follow an end.
func (e *ending) commitAgain(o storage.Outcome) (out []claybot.Outgoing, err error) {
	s := e.worker
	for {
		s.pause(time.Second, nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.job.box.Context()), storeTime)
		out, err = e.commit(ctx, o)
		if errors.Is(err, storage.ErrLeaseLost) {
			run, lookErr := s.stores.Reader.Run(ctx, e.job.run.ID)
			switch {
			case unsure(lookErr):
				err = lookErr
			case lookErr == nil && run.State == o.State && run.Output == asStored(o.Output): // if another member did it, it did the same
				s.parts.Deliverer.Look(o.Replies)
				s.parts.Boxes.Wake()
				err = nil
			}
		}
		cancel()
		if !unsure(err) || s.isDraining() {
			return out, err
		}
	}
}

// result returns the outcome for the waiters of the run's messages.
func (e *ending) result(o storage.Outcome) inbox.Result {
	run := e.job.run
	r := inbox.Result{Run: run.ID, State: o.State, Text: e.answer.text()}
	switch o.State {
	case claybot.RunFailed:
		r.Err = &inbox.RunFailedError{Run: run.ID, Code: o.Error.Code}
	case claybot.RunCanceled:
		r.Err = inbox.ErrCanceled
		var c *inbox.CanceledError
		if errors.As(context.Cause(e.job.box.Context()), &c) && c.By == "reset" || run.Cancel == "reset" {
			r.Err = inbox.ErrReset
		}
	}
	return r
}

// notifyFollower reports the end of the run to the connector that created the run's agent,
// or that scheduled the run.
func (e *ending) notifyFollower(o storage.Outcome) {
	name := e.job.agent.Descriptor.Type
	if e.job.firing() != nil {
		name = claybot.AgentCron
	}
	f, ok := e.worker.parts.Connector(string(name)).(connectors.Follower)
	if !ok {
		return
	}
	run := e.job.run
	run.State, run.Error, run.Output, run.Usage, run.Ended = o.State, o.Error, o.Output, o.Usage, claybot.Now()
	f.Ended(e.job.agent.Descriptor, run)
}

// saveState writes state.json if the agent's destination, engine, model or memory
// changed, after its first run, and occasionally for the counters, which are in the
// index.
func (s *Worker) saveState(ctx context.Context, j *job, t *tally) {
	st := j.agent.State
	now := claybot.Now()
	moved := false
	if m := j.newestOf(claybot.MessageUser); m != nil {
		route := m.ReplyRoute(j.agent.Descriptor)
		route.ReplyTo, route.UserID = "", j.agent.Descriptor.UserID
		moved = st.Routing == nil || *st.Routing != route
		st.Routing = &route
	} else if m := j.work().Newest(); m.Firing != nil && m.Route != nil {
		moved = st.Routing == nil || *st.Routing != *m.Route
		st.Routing = m.Route
	}
	q := s.parts.Profiles.Of(j.agent.ID, j.agent.Descriptor)
	changed := st.Provider == nil || st.Usage.LLMCalls == 0 && t.usage.LLMCalls > 0 || st.Engine != cmp.Or(q.Engine, claybot.EngineReact) ||
		st.Background == nil && st.Provider.Model != q.Model || st.Provider.Profile != q.Name || q.Forget != (st.Memory == claybot.MemoryOff)
	if !moved && !changed && now-st.UpdatedAt < claybot.Time(stateEvery.Milliseconds()) {
		return
	}
	entry, err := s.stores.Index.IndexedAgentByID(ctx, j.agent.ID)
	if err != nil {
		j.log.Warn("failed to read the agent's counters", "err", err)
		return
	}
	agent := j.agent
	agent.State = st
	st = s.parts.Profiles.InForce(agent, s.parts.Profiles.OwnSettings(agent.ID))
	st.UpdatedAt, st.LastUserAt = now, entry.LastUserAt
	st.Usage = entry.Usage.Add(t.usage)
	st.Context = t.context
	if err := s.stores.Agents.SaveState(ctx, j.box.Lease, st); err != nil {
		j.log.Warn("failed to save the agent's state", "err", err)
	}
}

// giveUp prepares the end of a run that is no longer retried. Its unanswered messages had
// no side effects, but one of them may crash the process, so none of them is shown to a
// model again. If there are several, each is posted again as a message that runs alone,
// so that only the one at fault fails. giveUp reports whether a recipient of the end is
// left.
func (e *ending) giveUp(ctx context.Context) (notify bool) {
	j := e.job
	if e.talk.history == nil {
		return true // its side effects are unknown
	}
	fresh, _ := unanswered(e.talk.history.Records(), j.run.ID)
	for _, m := range j.messages {
		if len(j.messages) == 1 || !slices.Contains(fresh, m.ID) || m.Alone || m.Run != "" || m.Silent {
			notify = notify || !m.Silent
			continue
		}
		m.ID, m.Keys, m.Alone = m.ID+"/alone", nil, true
		e.again = append(e.again, storage.Posting{To: j.agent.ID, Message: m})
	}
	note := j.note("warn", "given up; what was not answered is left out from here on")
	note.Interrupted = true
	if err := e.talk.history.Buffer(ctx, note); err != nil { // the end of the run saves it
		j.log.Warn("failed to record that the run was given up", "err", err)
	}
	return notify
}
