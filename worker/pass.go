package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// A pass is one worker's way through one run.
type pass struct {
	*Worker
	box      *inbox.AgentInbox
	agent    claybot.Agent
	profile  profiles.Profile
	run      claybot.Run
	messages []claybot.AgentMessage
	log      *slog.Logger
	hidden   func(claybot.Record) bool // records that the engine does not see

	history storage.History
	live    *live
	round   map[string]claybot.Question // what the run has asked, by id
	inDoubt map[string]claybot.Time     // tool calls that an earlier pass started, and when
	usage   claybot.Usage
	calls   []storage.ModelCall // that usage is made of
	context int64               // tokens of the newest request
	broken  error               // a store that failed, whatever the engine made of it
	policy  inbox.Policy        // that the run went by last
	// pending are events that are committed with the next thing that takes
	// time: a tool, a model call, a pause or the end of the run. Tools add to
	// them while they work.
	pending  []claybot.Event
	pendings sync.Mutex
	helpers  map[claybot.AgentID]bool  // that events have told of
	begun    map[runs.NodeStarted]bool // nodes that an earlier pass began and did not end
	answer   []string                  // the assistant texts since the last tool call
	growing  growing                   // the text of the step that is being written
	step     int                       // of the newest assistant record
	effects  []claybot.Undo            // that can be undone
	repaired bool                      // what earlier passes did is known
	graph    bool                      // the engine is one: its state is in the records
	seq      int64                     // of the newest event, counted along with the store
	tries    Tries                     // that are charged to the run
	again    []storage.Posting         // messages that come again when it is given up
}

// do runs the engine and ends the run, or pauses it. An error means that the
// run did not end and goes on later.
func (p *pass) do(life context.Context) error {
	ctx, cancel := context.WithDeadlineCause(life, p.deadline(), errDeadline)
	defer cancel()
	p.live = p.watch(ctx)
	defer p.live.close()
	p.AtWork.Begin(p.run.ID, p.work())
	defer p.AtWork.End(p.run.ID, p)
	history, err := p.Histories.OpenHistory(life, p.box.Lease)
	switch {
	case err != nil && p.tries.GivenUp() && !waits(err) && !errors.Is(err, storage.ErrLeaseLost):
		p.log.Error("failed to open history", "err", err)
		return p.end(errInterrupted) // which does without
	case err != nil:
		return fmt.Errorf("open history: %w", err)
	}
	p.history = history
	if out := leftOut(history.Records()); out != nil {
		hidden := p.hidden
		p.hidden = func(r claybot.Record) bool { return hidden(r) || r.MessageID != "" && out[r.MessageID] }
	}
	defer history.Close() // its writes are synced; closing has nothing to report
	if p.firing() != nil {
		p.saveState(life) // its subagents may report before it ends
	}
	err = p.advance(ctx)
	cause := context.Cause(ctx)
	var canceled *inbox.CanceledError
	if !p.repaired && err != nil && !errors.As(err, new(*runs.Error)) && !errors.As(err, &canceled) {
		return err // what earlier passes did is not known, so this one cannot end the run
	}
	if err != nil && cause != nil || errors.As(cause, &canceled) {
		err = cause // what the engine met is a consequence, and an answer to a canceled run is too late
	}
	var wait *runs.WaitError
	if errors.As(err, &wait) {
		return p.suspend(life, wait.Awaiting)
	}
	return p.end(err)
}

// deadline is when the run fails at the latest: the profile's limit for one
// pass, or what a message of the run says.
func (p *pass) deadline() time.Time {
	limit := p.profile.Deadline
	if limit == 0 {
		limit = defaultDeadline
	}
	end := time.Now().Add(limit)
	for _, m := range p.messages {
		if m.Deadline != 0 && m.Deadline.Time().Before(end) {
			end = m.Deadline.Time()
		}
	}
	return end
}

// suspend pauses the run until its answers have come. The agent is free for
// nothing else meanwhile, but no member holds it.
func (p *pass) suspend(ctx context.Context, a claybot.Awaiting) error {
	p.live.close()
	for _, m := range p.messages {
		if m.Deadline != 0 {
			a.Until = min(a.Until, m.Deadline)
		}
	}
	asked, err := p.asking(ctx, a.Questions)
	if err != nil {
		return err
	}
	pause := storage.Pause{Awaiting: a, Engine: p.engineName(), Result: p.resultJSON(), Wait: p.Profiles.Of(p.agent.ID, p.agent.Descriptor).Policy.Wait(), Replies: asked, Usage: p.usage}
	pause.End = storage.EndOf(ctx, p.history)
	pause.Events = p.closing(runs.Paused(p.run.ID, a))
	if err := p.Runs.Suspend(ctx, p.box.Lease, p.run.ID, pause); err != nil {
		return err
	}
	p.show(pause.Events...)
	p.log.Debug("run paused", "answers", len(a.Answers), "until", a.Until.Time())
	p.Deliverer.Look(asked)
	return nil
}

// Ends of a run that come from outside its engine.
var (
	errDeadline    = &runs.Error{Code: runs.CodeDeadline, Text: "the run passed its deadline"}
	errInterrupted = &runs.Error{Code: "interrupted", Text: fmt.Sprintf("given up after %d interrupted attempts", maxAttempts)}
)

// advance repairs what a crash left and takes the engine as far as it goes. A
// panic of the engine is an error of the run.
func (p *pass) advance(ctx context.Context) (err error) {
	defer func() {
		if x := recover(); x != nil {
			p.Meter.Panicked("engine")
			p.log.Error("engine panicked", "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
			err = &runs.Error{Code: "panic", Text: fmt.Sprint("the engine panicked: ", x)}
		}
	}()
	if err := p.bringFiles(ctx); err != nil {
		return err
	}
	if err := p.repairAnyway(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.run.Cancel != "" {
		return &inbox.CanceledError{By: p.run.Cancel}
	}
	if p.tries.GivenUp() {
		return errInterrupted
	}
	name, engine := p.engine(p.engineName())
	if engine == nil {
		return &runs.Error{Code: "no_engine", Text: fmt.Sprintf("there is no engine %q", name)}
	}
	for rec, err := range engine.Run(ctx, p.turn()) {
		switch {
		case p.broken != nil:
			return p.broken
		case err != nil:
			return engineError(err)
		}
		if err := p.record(ctx, rec); err != nil {
			return err
		}
	}
	return p.broken
}

// engineError gives an error of an engine that names no code the one for such.
func engineError(err error) error {
	var coded *runs.Error
	if errors.As(err, &coded) {
		return err
	}
	why := runs.Explain(err)
	return &runs.Error{Code: why.Code, Text: why.Text, Err: err}
}

func (p *pass) turn() *runs.Turn {
	return &runs.Turn{
		Run:      p.run,
		Agent:    p.agent,
		History:  p.remembered(),
		Messages: slices.Clone(p.messages),
		Inject:   p.inject,
		Started:  p.started,
		Emit:     p.emit,
		InDoubt:  func(call string) bool { return p.inDoubt[call] != 0 },
		Began:    func(call string) claybot.Time { return p.inDoubt[call] },
		Delta:    p.grow,
		Usage:    p.used,
		Lost:     p.lost,
		Save: func(ctx context.Context, call, text string) (string, error) {
			return p.Files.SaveResult(ctx, p.agent.ID, string(p.run.ID)+"-"+call, text)
		},
		Tell: p.tell,
		Ask: func(ctx context.Context, round string, qs []claybot.Question) ([]claybot.Answered, *claybot.Awaiting, error) {
			return p.Questions.AskFor(ctx, p.work(), tools.Env{Run: p.run.ID, CallID: round}, qs)
		},
		SaveFile: p.saveFile,
		OpenFile: p.openFile,
	}
}

// tell sends a notice to the reader of the run, once for each key.
func (p *pass) tell(ctx context.Context, key, text string) error {
	if err := p.Deliverer.SendOnce(ctx, p.outgoing(claybot.OutgoingNotice), fmt.Sprintf("tell/%s/%s", p.run.ID, key), text); err != nil {
		return fmt.Errorf("tell the reader: %w", err)
	}
	return nil
}

// used counts what a model call or a tool took.
func (p *pass) used(u claybot.Usage) {
	p.usage = p.usage.Add(u)
	if u.LLMCalls > 0 {
		p.context = u.Input
	}
}

// remembered is the history that the engine sees.
func (p *pass) remembered() []claybot.Record {
	return visible(p.history.Records(), p.hidden)
}

// record makes one record of the engine durable: history first. Its event is
// committed with what comes next, at the latest before the engine waits for
// something; should a crash come in between, it is made again from history.
func (p *pass) record(ctx context.Context, r claybot.Record) error {
	r.Run, r.Aside = p.run.ID, p.profile.Forget
	if r.Type == claybot.RecordSummary {
		r.Keep = keptInFile(p.history.Records(), p.hidden, r.Keep)
	}
	if r.At == 0 {
		r.At = claybot.Now()
	}
	if err := p.history.Append(ctx, r); err != nil {
		return fmt.Errorf("append history: %w", err)
	}
	p.note(r)
	p.spend(r)
	if r.Type == claybot.RecordTool {
		p.live.works("")
	}
	ev, ok := runs.EventOf(r)
	if !ok {
		return nil
	}
	p.add(ev)
	return p.progress(ctx, r)
}

// progress sends a text that came together with tool calls, where the profile
// asks for that.
func (p *pass) progress(ctx context.Context, r claybot.Record) error {
	if !p.profile.Progress || len(r.ToolCalls) == 0 || strings.TrimSpace(r.Text) == "" {
		return nil
	}
	if err := p.Deliverer.SendOnce(ctx, p.outgoing(claybot.OutgoingAnswer), fmt.Sprintf("progress/%s/%d", p.run.ID, r.Step), r.Text); err != nil {
		return fmt.Errorf("send progress: %w", err)
	}
	return nil
}

// note keeps what the end of the run needs to know of a record.
func (p *pass) note(r claybot.Record) {
	p.step = max(p.step, r.Step)
	switch {
	case r.Type == claybot.RecordAssistant && len(r.ToolCalls) == 0:
		p.answer = append(p.answer, r.Text)
	case r.Type == claybot.RecordAssistant || r.Type == claybot.RecordTool:
		p.answer = nil
	}
	if r.Undo != nil {
		p.affect(*r.Undo)
	}
	if r.Change != nil {
		p.graph = true
	}
}

// affect records an effect that can be undone. What one call undoes is one
// effect, however often it was added to.
func (p *pass) affect(u claybot.Undo) {
	same := func(x claybot.Undo) bool {
		return u.Call != nil && x.Call != nil && u.Call.Name == x.Call.Name && u.Call.Args == x.Call.Args
	}
	if !slices.ContainsFunc(p.effects, same) {
		p.effects = append(p.effects, u)
	}
}

// spend keeps what the model call of a record took.
func (p *pass) spend(r claybot.Record) {
	if r.Tokens != nil {
		p.calls = append(p.calls, storage.ModelCall{Model: r.Model, Usage: *r.Tokens, MS: r.MS})
	}
}

// grow shows the text of a step to the watchers of the run and to its reader.
func (p *pass) grow(step int, text string) {
	p.growing.set(step, text)
	p.Hub.Grow(p.run.ID, "model", step, text)
	p.live.delta(step, text)
}

// show tells an observing connector what happened: each stored event once, in
// order.
func (p *pass) show(events ...claybot.Event) {
	o, ok := p.Connector(p.agent.Descriptor.Connector).(connectors.Observer)
	for _, e := range events {
		p.seq++
		e.Seq = p.seq
		p.Meter.Event(p.agent.ID, e)
		if ok && p.First(e) {
			o.Observe(p.route(), e)
		}
	}
}

// started records that a tool is about to run.
func (p *pass) started(ctx context.Context, call claybot.ToolCall, effect string) error {
	p.live.works(call.Name)
	return p.commitWith(ctx, false, runs.ToolCalled(p.run.ID, call, effect))
}

// inject takes messages that arrived during the tools of a step into the run.
func (p *pass) inject(ctx context.Context) ([]claybot.Record, error) {
	policy := p.Profiles.Of(p.agent.ID, p.agent.Descriptor).Policy // a change counts for the next injection
	p.switched(policy)
	if policy.WhenBusy != inbox.InjectAfterTools || len(p.messages) == 0 {
		return nil, nil
	}
	limit := policy.Limit()
	if policy.ProcessBuffer == inbox.OneByOne {
		limit = 1
	}
	if err := p.commit(ctx); err != nil { // what is taken comes after it
		return nil, err
	}
	first := p.work().Newest()
	more, err := p.Leases.Take(ctx, p.box.Lease, p.run.ID, limit, func(m claybot.AgentMessage) bool {
		return inbox.Together(first, m)
	})
	if err != nil || len(more) == 0 {
		p.broken = err
		return nil, err
	}
	return p.joined(ctx, more)
}

// joined makes records of messages that were just bound to the run. However it
// ends from here on, they end with it, and a waiter may depend on that.
func (p *pass) joined(ctx context.Context, more []claybot.AgentMessage) ([]claybot.Record, error) {
	ids := make([]claybot.MessageID, len(more))
	for i, m := range more {
		ids[i] = m.ID
	}
	p.messages = append(p.messages, more...)
	p.show(runs.Injected(p.run.ID, ids))
	more = p.messages[len(p.messages)-len(more):] // where their files are put
	stopped := p.fetchFiles(ctx, more)
	p.AtWork.Begin(p.run.ID, p.work())
	if stopped != nil && !endsRun(stopped) {
		p.broken = stopped
		return nil, stopped
	}
	records := make([]claybot.Record, len(more))
	for i, m := range more {
		records[i] = p.userRecord(m)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if p.broken = p.history.Append(ctx, records...); p.broken != nil {
		return nil, p.broken
	}
	return records, stopped
}

// switched tells that the rules by which the run takes messages have changed.
func (p *pass) switched(now inbox.Policy) {
	before := p.policy
	p.policy = now
	if before.WhenBusy != now.WhenBusy {
		p.add(runs.Switched(p.run.ID, "whenBusy="+string(before.WhenBusy), "whenBusy="+string(now.WhenBusy), "settings"))
	}
	if before.ProcessBuffer != now.ProcessBuffer {
		p.add(runs.Switched(p.run.ID, "processBuffer="+string(before.ProcessBuffer), "processBuffer="+string(now.ProcessBuffer), "settings"))
	}
}

// userRecord is the record of a message: of a person, or of the system.
func (p *pass) userRecord(m claybot.AgentMessage) claybot.Record {
	r := claybot.Record{
		Type: claybot.RecordUser, At: m.At, Run: p.run.ID,
		MessageID: m.ID, Text: m.Text, Quote: m.Context.Quote,
		Files: m.Files, Aside: p.profile.Forget, Tainted: m.Tainted,
	}
	if m.Type == claybot.MessageSystem {
		r.Type, r.Kind, r.Silent = claybot.RecordSystem, m.Kind, m.Silent
		r.Origin = cmp.Or(string(m.From.Agent), m.From.Name, "claybot")
		if m.From.Agent != "" {
			r.SenderName = m.From.Name
		}
		return r
	}
	from := m.From
	r.From = &from
	return r
}

// outgoing is what all messages of the run to its reader have in common.
func (p *pass) outgoing(kind claybot.OutgoingKind) claybot.Outgoing {
	o := claybot.Outgoing{Kind: kind, Run: p.run.ID, Agent: p.agent.ID, Route: p.route()}
	o.Message = p.work().Newest().ID
	return o
}

// route is where the answer goes: to the newest message of the run.
func (p *pass) route() claybot.Route {
	return p.work().Route()
}

// work is what the pass works on.
func (p *pass) work() runs.Work {
	return runs.Work{Pass: p, Agent: p.agent, Messages: p.messages, Add: p.add, Asked: p.round}
}

// newestOf is the newest message of the run that has a type; nil for none.
func (p *pass) newestOf(typ claybot.MessageType) *claybot.AgentMessage {
	for _, m := range slices.Backward(p.messages) {
		if m.Type == typ {
			return &m
		}
	}
	return nil
}

// firing is the instant of a cron task that the run is; nil for other runs.
func (p *pass) firing() *claybot.Firing {
	for _, m := range p.messages {
		if m.Firing != nil {
			return m.Firing
		}
	}
	return nil
}
