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
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// end ends the run for the reason err gives, nil for success. An error says
// that the run did not end: the process is stopping, the lease is gone, or the
// store failed.
func (p *pass) end(err error) error {
	var canceled *inbox.CanceledError
	var failed *runs.Error
	switch {
	case err == nil:
		o := p.succeeded()
		err := p.finish(o)
		if errors.Is(err, storage.ErrCanceled) { // in the last moment
			p.add(o.Events[:len(o.Events)-1]...) // all but its success has happened
			return p.tooLate()
		}
		return err
	case errors.As(err, &canceled):
		return p.canceled(canceled)
	case errors.As(err, &failed):
		return p.finish(p.failed(failed))
	}
	return err
}

// succeeded is the outcome of a run that came to its end: its last text is the
// reply.
func (p *pass) succeeded() storage.Outcome {
	text := strings.Join(p.answer, "")
	o := storage.Outcome{State: claybot.RunSucceeded, Output: runs.Preview(text)}
	if runs.IsNoReply(text) || strings.TrimSpace(text) == "" {
		text = ""
	}
	if f := p.firing(); f != nil && f.Late != "" && text != "" {
		text += "\n\n*(" + f.Late + ")*"
	}
	o.Replies = p.reply(claybot.OutgoingAnswer, text)
	if f := p.firing(); f != nil && f.Recovered {
		o.Replies = append(o.Replies, p.Deliverer.Compose(p.outgoing(claybot.OutgoingNotice), texts.Recovered(p.agent.Descriptor.Name))...)
	}
	p.offerUndo(o.Replies)
	o.Events = p.closing(runs.Finished(p.run.ID, text, p.usage))
	return o
}

// failed is the outcome of a run that met an error: one sentence for the
// person, the rest for the operator.
func (p *pass) failed(e *runs.Error) storage.Outcome {
	p.log.Warn("run failed", "code", e.Code, "err", e.Text)
	why := runs.Explain(e)
	o := storage.Outcome{
		State:  claybot.RunFailed,
		Error:  &why,
		Events: p.closing(runs.Failed(p.run.ID, why, p.step)),
	}
	text := texts.Failed(p.run.ID, e.Code)
	if e.Say != "" {
		text = e.Say
	} else if cause := p.advice(e); cause != "" {
		text += "\n\n" + cause
	}
	if f := p.firing(); f != nil {
		if f.Quiet {
			text = ""
		} else {
			text = texts.TaskFailed(p.agent.Descriptor.Name, text)
		}
	}
	begun := p.live.shown()
	if begun == "" && p.live.preview != nil {
		begun = p.growing.after(p.step)
	}
	if e == errInterrupted && !p.giveUp(p.box.Context()) && begun == "" {
		text = "" // all of it comes again
	}
	if begun != "" && text != "" {
		text = strings.TrimSpace(begun + "\n\n" + text)
	}
	o.Replies = p.reply(claybot.OutgoingNotice, text)
	p.offerUndo(o.Replies)
	return o
}

// tooLate ends a run as canceled that was about to succeed.
func (p *pass) tooLate() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.box.Context()), storeTime)
	defer cancel()
	run, err := p.Reader.Run(ctx, p.run.ID)
	if err != nil {
		return err
	}
	p.run.Cancel = run.Cancel
	return p.canceled(&inbox.CanceledError{By: run.Cancel})
}

// canceled ends a run that was stopped. Whoever stopped it is answered already; what
// was written of the answer is kept.
func (p *pass) canceled(c *inbox.CanceledError) error {
	ctx := context.WithoutCancel(p.box.Context())
	partial, err := p.keepPartial(ctx, c.By)
	if err != nil {
		return err
	}
	note := claybot.Record{Type: claybot.RecordNote, At: claybot.Now(), Run: p.run.ID, Level: "info", Text: c.Error()}
	if p.history != nil { // else its files cannot be read
		if err := p.history.Append(ctx, note); err != nil {
			return err
		}
	}
	p.run.Cancel = c.By
	o := storage.Outcome{State: claybot.RunCanceled, Output: runs.Preview(partial), Replies: p.stoppedReply(partial)}
	said := ""
	if len(o.Replies) > 0 {
		said = partial
	}
	o.Events = p.closing(runs.Stopped(p.run.ID, c.By, said))
	return p.finish(o)
}

// reply returns the outgoing messages of a text. When a draft is visible, the
// first part takes its place.
func (p *pass) reply(kind claybot.OutgoingKind, text string) []claybot.Outgoing {
	p.live.close()
	if text == "" {
		text = p.live.leftover(texts.NothingToAdd)
	}
	if text == "" {
		return nil
	}
	out := p.Deliverer.Compose(p.outgoing(kind), text)
	d := p.live.draft()
	if d == nil || len(out) == 0 {
		return out
	}
	out[0].ID, out[0].Edit = d.Outgoing, d.Receipt
	if d.Receipt != "" {
		return out
	}
	// Whether its beginning stands there is unknown: a platform that can be
	// asked is asked first, elsewhere the whole text carries the mark.
	if _, ok := p.Connector(out[0].Route.Connector).(connectors.Finder); ok {
		out[0].State, out[0].Tried = claybot.SendAmbiguous, d.Tried
	} else {
		out[0].Resent, out[0].Copies = true, 1
		out[0].Due = claybot.At(delivery.ResendAt(d.Tried.Time()))
	}
	return out
}

// finish commits the end of the run, frees the agent, and hands the replies to
// the deliverer.
func (p *pass) finish(o storage.Outcome) error {
	p.live.close()
	// The run's own context may be done; its end is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.box.Context()), storeTime)
	defer cancel()
	if p.history != nil && o.State == claybot.RunFailed { // before its first record, its messages are buffered only
		if err := p.history.Append(ctx); err != nil {
			return err
		}
	}
	withdrawn, err := p.Questions.Withdraw(ctx, p.unanswered())
	if err != nil {
		return err
	}
	o.Replies = append(o.Replies, withdrawn...)
	o.Usage, o.Calls = p.usage, p.calls
	o.Engine, o.Result, o.Undo, o.UndoOf = p.engineName(), p.resultJSON(), p.effects, p.undoes()
	o.Wait, o.End = p.Profiles.Of(p.agent.ID, p.agent.Descriptor).Policy.Wait(), storage.EndOf(ctx, p.history)
	p.saveState(ctx)
	result := p.result(o)
	ids := make([]claybot.MessageID, len(p.messages))
	for i, m := range p.messages {
		ids[i] = m.ID
	}
	if result.Err != nil { // before the end of the run lets the agent go on with them
		doomed := p.DropDoomed(p.agent.ID, ids)
		defer p.Waiters.Ended(inbox.Result{Err: inbox.ErrDropped}, doomed...)
	}
	out, err := p.commitEnd(ctx, o)
	if unsure(err) && p.Members.Retries(err) {
		if out, err = p.commitEndAgain(o); err == nil {
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), storeTime)
			defer cancel()
		}
	}
	if err != nil {
		return err
	}
	p.Deliverer.Hand(out)
	if o.State != claybot.RunSucceeded {
		p.Subagents.StopAwaited(ctx, p.agent.ID, p.run.ID)
	}
	p.tellFollower(o)
	p.show(o.Events...)
	p.log.Debug("run ended", "state", o.State, "cost", p.usage.CostMicroUSD)
	p.Waiters.Ended(result, ids...)
	return nil
}

// unsure reports that a commit may have happened although its answer was an error.
func unsure(err error) bool {
	return errors.Is(err, storage.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

// asStored is a text as the store gives it back: JSON has no bytes that are not UTF-8.
func asStored(text string) string {
	var back string
	b, err := json.Marshal(text)
	if err != nil || json.Unmarshal(b, &back) != nil {
		return text
	}
	return back
}

// commitEndAgain commits an end whose first commit has an unknown fate, until the
// store answers or a shutdown begins: an end that is refused because the lease went
// with the first one is good. Nobody else would do what follows an end.
func (p *pass) commitEndAgain(o storage.Outcome) (out []claybot.Outgoing, err error) {
	for {
		p.restWhileUp(time.Second, nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.box.Context()), storeTime)
		out, err = p.commitEnd(ctx, o)
		if errors.Is(err, storage.ErrLeaseLost) {
			run, lookErr := p.Reader.Run(ctx, p.run.ID)
			switch {
			case unsure(lookErr):
				err = lookErr
			case lookErr == nil && run.State == o.State && run.Output == asStored(o.Output): // if another node did it, it did the same
				p.Deliverer.Look(o.Replies)
				p.Boxes.Wake()
				err = nil
			}
		}
		cancel()
		if !unsure(err) || p.isDraining() {
			return out, err
		}
	}
}

// result returns the outcome for the waiters of the run's messages.
func (p *pass) result(o storage.Outcome) inbox.Result {
	r := inbox.Result{Run: p.run.ID, State: o.State, Text: strings.Join(p.answer, "")}
	switch o.State {
	case claybot.RunFailed:
		r.Err = &inbox.RunFailedError{Run: p.run.ID, Code: o.Error.Code}
	case claybot.RunCanceled:
		r.Err = inbox.ErrCanceled
		var c *inbox.CanceledError
		if errors.As(context.Cause(p.box.Context()), &c) && c.By == "reset" || p.run.Cancel == "reset" {
			r.Err = inbox.ErrReset
		}
	}
	return r
}

// saveState writes state.json when the agent's place or its engine, model or memory
// changed, after its first run, and for the counters now and then. The counters
// themselves are in the index.
func (p *pass) saveState(ctx context.Context) {
	st := p.agent.State
	now := claybot.Now()
	moved := false
	if m := p.newestOf(claybot.MessageUser); m != nil {
		route := m.ReplyRoute(p.agent.Descriptor)
		route.ReplyTo = ""
		moved = st.Routing == nil || *st.Routing != route
		st.Routing = &route
	} else if m := p.work().Newest(); m.Firing != nil && m.Route != nil {
		moved = st.Routing == nil || *st.Routing != *m.Route
		st.Routing = m.Route
	}
	if !moved && !p.profileChanged(st) && now-st.UpdatedAt < claybot.Time(stateEvery.Milliseconds()) {
		return
	}
	entry, err := p.Index.IndexedAgentByID(ctx, p.agent.ID)
	if err != nil {
		p.log.Warn("failed to read the agent's counters", "err", err)
		return
	}
	agent := p.agent
	agent.State = st
	st = p.Profiles.InForce(agent, p.Profiles.OwnSettings(agent.ID))
	st.UpdatedAt, st.LastUserAt = now, entry.LastUserAt
	st.Usage = entry.Usage.Add(p.usage)
	st.Context = p.context
	if err := p.Agents.SaveState(ctx, p.box.Lease, st); err != nil {
		p.log.Warn("failed to save the agent's state", "err", err)
	}
}

// profileChanged reports that the state has another engine, model or memory than is in
// force, or was not saved since the agent was created.
func (p *pass) profileChanged(st claybot.AgentState) bool {
	q := p.Profiles.Of(p.agent.ID, p.agent.Descriptor)
	return st.Provider == nil || st.Usage.LLMCalls == 0 && p.usage.LLMCalls > 0 || st.Engine != cmp.Or(q.Engine, claybot.EngineReact) ||
		st.Background == nil && st.Provider.Model != q.Model || st.Provider.Profile != q.Name || q.Forget != (st.Memory == claybot.MemoryOff)
}

// offerUndo puts a button below the last words of a plan that did something.
func (p *pass) offerUndo(out []claybot.Outgoing) {
	undoable := slices.ContainsFunc(p.effects, func(u claybot.Undo) bool { return u.Call != nil })
	if len(out) == 0 || !undoable || p.engineName() != claybot.EnginePlan {
		return
	}
	last := &out[len(out)-1]
	last.Offer = append(last.Offer, claybot.Offer{Label: "Undo", Command: "/undo " + string(p.run.ID)})
}
