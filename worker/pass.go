package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// A pass executes one run until it ends or pauses. Its parts hold the state; the pass
// calls them in order.
type pass struct {
	job    *job
	worker *Worker
	talk   *conversation
	tally  *tally
	answer *answer
	events *eventBuffer
	view   *progressView
	files  *attachments
	policy inbox.Policy // last one that applied to the run
}

// newPass prepares a pass over a run that was begun.
func (s *Worker) newPass(j *job) *pass {
	p := &pass{job: j, worker: s, tally: &tally{}, answer: &answer{}, policy: j.profile.Policy}
	observer, _ := s.parts.Active(j.agent.Descriptor.Connector).(connectors.Observer)
	p.events = &eventBuffer{
		job: j, seq: j.run.LastSeq - 1,
		store: func(ctx context.Context, progress bool, ev []claybot.Event) error {
			err := p.talk.flush(ctx)
			if err == nil {
				err = s.stores.Runs.Append(ctx, j.box.Lease, j.run.ID, progress, ev...)
			}
			if err == nil && progress {
				p.progressed(ctx)
			}
			return err
		},
		observe: func(e claybot.Event) {
			s.meter.Event(j.agent.ID, e)
			s.hooks.Event(j.engine(), e)
			if observer != nil && s.parts.First(e) {
				observer.Observe(j.work().Route(), e)
			}
		},
	}
	j.add = p.events.add
	p.talk = &conversation{job: j, tally: p.tally, answer: p.answer, events: p.events}
	p.talk.hidden = func(r *claybot.Record) bool {
		return (r.Aside || j.forgets()) && r.Run != j.run.ID
	}
	p.files = &attachments{
		job: j, store: s.stores.Files, talk: p.talk, connector: s.parts.Connector, transcribe: s.transcribe, panicked: s.meter.Panicked,
		quota: s.parts.Quota, tell: p.Tell,
	}
	return p
}

// do runs the engine and ends the run, or pauses it. An error means that the run did not
// end and is resumed later.
func (p *pass) do(life context.Context) error {
	s := p.worker
	ctx, cancel := context.WithDeadlineCause(life, p.job.deadline(), errDeadline)
	defer cancel()
	p.view = s.watch(ctx, p.job)
	defer p.view.end()
	defer p.view.close()
	s.parts.AtWork.Begin(p.job.run.ID, p.job.work())
	defer s.parts.AtWork.End(p.job.run.ID, p.job)
	p.mark(ctx, p.job.messages...)
	history, err := s.stores.Histories.OpenHistory(life, p.job.box.Lease)
	switch {
	case err != nil && p.job.charges.GivenUp() && !waits(err) && !errors.Is(err, storage.ErrLeaseLost):
		p.job.log.Error("failed to open history", "err", err)
		return p.end(errInterrupted) // which needs no history
	case err != nil:
		return fmt.Errorf("open history: %w", err)
	}
	p.talk.open(history)
	defer history.Close() // its writes are synced; closing has nothing to report
	if p.job.firing() != nil {
		s.saveState(life, p.job, p.tally) // its subagents may report before it ends
	}
	err = p.advance(ctx)
	cause := context.Cause(ctx)
	var canceled *inbox.CanceledError
	if !p.talk.repaired && err != nil && !errors.As(err, new(*runs.Error)) && !errors.As(err, &canceled) {
		return err // the work of earlier passes is unknown, so the run cannot end
	}
	if err != nil && cause != nil || errors.As(cause, &canceled) {
		err = cause // the engine's error is a consequence, and an answer to a canceled run is too late
	}
	var wait *runs.WaitError
	if errors.As(err, &wait) {
		return p.suspend(life, wait.Awaiting)
	}
	if why := (*runs.Error)(nil); errors.As(err, &why) {
		if f, ok := s.engines.named(p.job.engine()).(runs.Failer); ok {
			err = f.Failed(life, p.turn(), *why)
		}
	}
	return p.end(err)
}

// end ends the run for the reason err gives, nil for success.
func (p *pass) end(err error) error {
	e := &ending{job: p.job, worker: p.worker, talk: p.talk, tally: p.tally, answer: p.answer, events: p.events, view: p.view}
	return e.end(err)
}

// suspend pauses the run until its answers have arrived. The agent starts no other run
// meanwhile, but no member holds it.
func (p *pass) suspend(ctx context.Context, a claybot.Awaiting) error {
	p.view.close()
	for _, m := range p.job.messages {
		if m.Deadline != 0 {
			a.Until = min(a.Until, m.Deadline)
		}
	}
	asked, err := p.askAbout(ctx, a.Questions)
	if err != nil {
		return err
	}
	pause := storage.Pause{
		Awaiting: a, Engine: p.job.engine(), Result: p.talk.result(), Wait: p.worker.parts.Profiles.WaitOf(p.job.agent.ID, p.job.agent.Descriptor),
		Replies: asked, Usage: p.tally.usage, End: storage.EndOf(ctx, p.talk.history), Events: p.events.closing(runs.Paused(p.job.run.ID, a)),
	}
	if err := p.worker.stores.Runs.Suspend(ctx, p.job.box.Lease, p.job.run.ID, pause); err != nil {
		return err
	}
	p.events.show(pause.Events...)
	p.job.log.Debug("run paused", "answers", len(a.Answers), "until", a.Until.Time())
	p.worker.parts.Deliverer.Look(asked)
	return nil
}

// Causes outside the engine that end a pass.
var (
	errDeadline    = &runs.Error{Code: runs.CodeDeadline, Text: "the run passed its deadline"}
	errInterrupted = &runs.Error{Code: "interrupted", Text: fmt.Sprintf("given up after %d interrupted attempts", maxAttempts)}
)

// advance repairs the state after a crash and runs the engine. A panic of the engine
// is an error of the run.
func (p *pass) advance(ctx context.Context) (err error) {
	defer func() {
		if x := recover(); x != nil {
			p.worker.meter.Panicked("engine")
			p.job.log.Error("engine panicked", "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			err = &runs.Error{Code: "panic", Text: fmt.Sprint("the engine panicked: ", x)}
		}
	}()
	err = p.files.bring(ctx, p.job.run.Cancel != "" || p.job.charges.GivenUp())
	p.recall(ctx, p.job.messages)
	p.worker.parts.AtWork.Begin(p.job.run.ID, p.job.work())
	if err != nil && !endsRun(err) {
		return err // a run that ends now still has its records, which say what is missing
	}
	if err := p.repair(ctx); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.job.run.Cancel != "":
		return &inbox.CanceledError{By: p.job.run.Cancel}
	case p.job.charges.GivenUp():
		return errInterrupted
	}
	name := p.job.engine()
	engine := p.worker.engines.named(name)
	if engine == nil {
		return &runs.Error{Code: "no_engine", Text: fmt.Sprintf("there is no engine %q", name)}
	}
	for rec, err := range engine.Run(ctx, p.turn()) {
		switch {
		case p.job.broken != nil:
			return p.job.broken
		case err != nil:
			return engineError(err)
		}
		if err := p.record(ctx, rec); err != nil {
			return err
		}
	}
	return p.job.broken
}

// engineError adds the default code to an error of an engine without one. A storage.Fault of an unavailable
// store stays as it is, so that the run is resumed.
func engineError(err error) error {
	var coded *runs.Error
	if errors.As(err, &coded) {
		return err
	}
	if fault := (*storage.Fault)(nil); errors.As(err, &fault) && storage.Unavailable(fault) {
		return err
	}
	why := runs.Explain(err)
	return &runs.Error{Code: why.Code, Text: why.Text, Err: err}
}

// repair makes history and events of the run consistent, also if the pass ends at
// once, because the end of the run reports its work. History is written first, so a
// crash can leave only two gaps: messages of the run without a record, and one record
// without its event.
func (p *pass) repair(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	records, missing := p.talk.ofRun()
	// Only buffered: after a crash they are rebuilt from the messages of the run.
	if err := p.talk.history.Buffer(ctx, missing...); err != nil {
		return fmt.Errorf("append history: %w", err)
	}
	if p.job.run.Attempts == 1 && len(records) == 0 { // a new run has nothing to compare
		p.talk.repaired = true
		return nil
	}
	answers, end, err := p.takeAnswers(ctx, records)
	if err == nil {
		err = p.talk.repair(ctx, p.worker.stores.Reader, append(records, answers...))
	}
	if err == nil {
		err = end
	}
	p.talk.repaired = err == nil
	return err
}

// mark tells on messages that the run works on them; once for each.
func (p *pass) mark(ctx context.Context, messages ...claybot.AgentMessage) {
	a := p.job.profile.Acknowledge
	if a.Working == "" {
		return
	}
	d := p.worker.parts.Deliverer
	if _, err := d.Send(ctx, d.Marks(p.job.agent, p.job.run.ID, "working", a.Working, a.All()[:1], messages...)...); err != nil {
		p.job.log.Warn("failed to mark messages", "err", err)
	}
}

func (p *pass) turn() *runs.Turn {
	t := &runs.Turn{
		Run: p.job.run, Agent: p.job.agent, History: p.talk.remembered(), Messages: slices.Clone(p.job.messages),
		Journal: p, Costs: p.talk, Reader: p, Files: p.files,
	}
	if p.job.work().Dry() {
		t.Reader = nil // a dry run asks no person
	}
	return t
}

// record makes one record of the engine durable. If the profile enables progress, it
// sends text that came with tool calls at once.
func (p *pass) record(ctx context.Context, r claybot.Record) error {
	if err := p.talk.record(ctx, r); err != nil {
		return err
	}
	if r.Type == claybot.RecordTool {
		p.view.works("")
	}
	if !p.job.profile.Progress || p.job.unsent() || len(r.ToolCalls) == 0 || strings.TrimSpace(r.Text) == "" {
		return nil
	}
	return p.send(ctx, "send progress", claybot.OutgoingAnswer, fmt.Sprintf(delivery.ProgressPrefix+"%s/%d", p.job.run.ID, r.Step), r.Text)
}

// send sends a text to the reader of the run, once for each key.
func (p *pass) send(ctx context.Context, what string, kind claybot.OutgoingKind, key, text string) error {
	if err := p.worker.parts.Deliverer.SendOnce(ctx, p.job.outgoing(kind), key, text); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Tell implements runs.Reader.
func (p *pass) Tell(ctx context.Context, key, text string) error {
	return p.send(ctx, "notify the reader", claybot.OutgoingNotice, fmt.Sprintf("tell/%s/%s", p.job.run.ID, key), text)
}

// Ask implements runs.Reader.
func (p *pass) Ask(ctx context.Context, round string, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	return p.worker.parts.Questions.Asker.AskFor(ctx, p.job.work(), tools.Env{Run: p.job.run.ID, CallID: round}, qs)
}

// Grow implements runs.Journal.
func (p *pass) Grow(step int, text string) {
	p.answer.grow(step, text)
	p.worker.parts.Hub.Grow(p.job.run.ID, "model", step, text)
	p.view.grow(step, text)
}

// Emit implements runs.Journal.
func (p *pass) Emit(ctx context.Context, now bool, ev ...claybot.Event) error {
	return p.events.emit(ctx, now, ev...)
}

// Began implements runs.Journal.
func (p *pass) Began(call string) claybot.Time { return p.talk.inDoubt[call] }

// Started implements runs.Journal.
func (p *pass) Started(ctx context.Context, call claybot.ToolCall, effect string) error {
	p.view.works(call.Name)
	if err := p.events.commit(ctx, false, runs.ToolCalled(p.job.run.ID, call, effect)); err != nil {
		return err
	}
	p.tally.started(effect)
	return nil
}

// Inject implements runs.Journal.
func (p *pass) Inject(ctx context.Context) ([]claybot.Record, error) {
	policy := p.worker.parts.Profiles.Of(p.job.agent.ID, p.job.agent.Descriptor).Policy // changes apply to the next injection
	p.follow(policy)
	if policy.WhenBusy != inbox.InjectAfterTools || len(p.job.messages) == 0 || p.worker.parts.Stopped(p.job.agent) != "" {
		return nil, nil
	}
	limit := policy.Limit()
	if policy.ProcessBuffer == inbox.OneByOne {
		limit = 1
	}
	if err := p.events.commit(ctx, true); err != nil { // what is taken comes after it
		return nil, err
	}
	first, all := p.job.work().Newest(), slices.Clone(p.job.work().Messages)
	more, err := p.worker.stores.Leases.Take(ctx, p.job.box.Lease, p.job.run.ID, limit, func(m claybot.AgentMessage) bool {
		ok := inbox.Together(first, m) && inbox.OnePerson(all, m)
		if ok {
			all = append(all, m)
		}
		return ok
	})
	if err != nil || len(more) == 0 {
		p.job.broken = err
		return nil, err
	}
	return p.joined(ctx, more)
}

// joined adds records of messages that were just bound to the run. From here on they end
// with the run, which waiters may rely on.
func (p *pass) joined(ctx context.Context, more []claybot.AgentMessage) ([]claybot.Record, error) {
	ids := make([]claybot.MessageID, len(more))
	for i, m := range more {
		ids[i] = m.ID
	}
	p.job.messages = append(p.job.messages, more...)
	p.mark(ctx, more...)
	p.events.show(runs.Injected(p.job.run.ID, ids))
	more = p.job.messages[len(p.job.messages)-len(more):] // where their files are put
	stopped := p.files.fetchAll(ctx, more)
	p.recall(ctx, more)
	p.worker.parts.AtWork.Begin(p.job.run.ID, p.job.work())
	if stopped != nil && !endsRun(stopped) {
		p.job.broken = stopped
		return nil, stopped
	}
	records := make([]claybot.Record, len(more))
	for i, m := range more {
		records[i] = p.job.userRecord(m)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if p.job.broken = p.talk.append(ctx, records...); p.job.broken != nil {
		return nil, p.job.broken
	}
	return records, stopped
}

// follow applies the current rules for taking messages.
func (p *pass) follow(now inbox.Policy) {
	before := p.policy
	p.policy = now
	if before.WhenBusy != now.WhenBusy {
		p.events.add(runs.Switched(p.job.run.ID, "whenBusy="+string(before.WhenBusy), "whenBusy="+string(now.WhenBusy), "settings"))
	}
	if before.ProcessBuffer != now.ProcessBuffer {
		p.events.add(runs.Switched(p.job.run.ID, "processBuffer="+string(before.ProcessBuffer), "processBuffer="+string(now.ProcessBuffer), "settings"))
	}
}

// progressed clears the charges of a run that makes progress, except on probation, when
// it may still crash the process.
func (p *pass) progressed(ctx context.Context) {
	if p.job.charges.clear() && p.job.charges.Ends == 0 || p.worker.Recovery.isTesting(p.job.box) {
		return
	}
	if err := p.worker.charges.keep(ctx, p.job.agent.ID, Charges{}); err != nil {
		p.job.log.Warn("failed to clear a crash charge", "err", err)
		return
	}
	p.job.charges = Charges{}
}

// endsRun reports whether err ends the run now, rather than leaving it to be resumed.
func endsRun(err error) bool {
	var canceled *inbox.CanceledError
	return errors.As(err, &canceled) || errors.As(err, new(*runs.Error))
}
