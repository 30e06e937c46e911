package react

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// A pass is one Run of the loop. Its parts share the conversation and the window, and
// nothing else.
//
//	pass ─┬→ answerer → compaction, extension (of a budget), chat (the model)
//	      └→ calls → approvals, gate (limits)
type pass struct {
	turn       *runs.Turn
	talk       *conversation
	answers    *answerer
	calls      *calls
	compaction *compaction
	maxSteps   int
	pushBacks  int            // answers without calls that the run may push back
	prompt     error          // why there is no system prompt
	now        *claybot.Index // of the notes and skills of the moment; nil: unknown
}

// pass builds a pass of its parts, by the settings of the moment.
func (l *Loop) pass(t *runs.Turn, yield func(claybot.Record, error) bool) *pass {
	log := slog.New(slog.DiscardHandler)
	if l.Log != nil {
		log = l.Log.With("agent", t.Agent.ID, "run", t.Run.ID)
	}
	set := l.tools(t.Agent)
	now, history := l.index(t, log)
	w, prompt := l.window(t, set, history)
	w.kept = l.chatFor(t.Agent.ID, history)
	talk := &conversation{
		run: t.Run.ID, yield: yield, tools: set,
		records:  slices.Clip(history), // appending copies: the turn's slice stays as it is
		progress: readProgress(t.History, t.Run.ID, ask(l.Limits, t.Agent), set.Check),
	}
	model := l.Model(t.Agent)
	g := &gate{turn: t, talk: talk, tools: set, dry: ask(l.Dry, t.Agent)}
	maxSteps := cmp.Or(max(ask(l.MaxSteps, t.Agent), 0), DefaultMaxSteps)
	if skillOf(t) != "" {
		maxSteps++ // its use is no answer of the model
	}
	compaction := &compaction{turn: t, talk: talk, window: w, model: model, log: log}
	return &pass{
		turn: t, talk: talk, compaction: compaction, prompt: prompt, now: now, maxSteps: maxSteps, pushBacks: l.pushBacks(t),
		answers: &answerer{
			costs: t, talk: talk, window: w, chat: &chat{turn: t, model: model, window: w, format: formatOf(t)}, compaction: compaction,
			named:  set.Named,
			limits: &extension{turn: t, talk: talk, budgets: l.Budgets, log: log}, log: log,
		},
		calls: &calls{turn: t, talk: talk, tools: set, gate: g, consent: &approvals{
			turn: t, talk: talk, tools: set, gate: g, log: log,
			rules: ask(l.Approve, t.Agent), place: ask(l.Place, t.Agent), people: l.People,
		}},
	}
}

// ask is what a setting says of an agent; nothing where it is not set.
func ask[T any](setting func(claybot.Agent) T, a claybot.Agent) (v T) {
	if setting != nil {
		v = setting(a)
	}
	return v
}

// pushBacks is how many answers without calls a turn may push back: none where its answer has a
// format, because there the answer itself is what was asked for.
func (l *Loop) pushBacks(t *runs.Turn) int {
	if formatOf(t) != nil {
		return 0
	}
	return ask(l.RequireTool, t.Agent)
}

// tools are those of an agent.
func (l *Loop) tools(a claybot.Agent) *tools.Set {
	if set := ask(l.Tools, a); set != nil {
		return set
	}
	set, _ := tools.NewSet() // no tools, no error
	return set
}

// index returns the notes and skills of the moment, and the history that the run may see.
func (l *Loop) index(t *runs.Turn, log *slog.Logger) (*claybot.Index, []claybot.Record) {
	if l.Index == nil {
		return nil, t.History
	}
	now, err := l.Index(t)
	if err == nil {
		return &now, disclosed(t.History, now)
	}
	log.Warn("failed to list notes and skills", "err", err)
	return nil, disclosed(t.History, now)
}

// window is what each request of a turn holds besides the conversation, and how much
// the model takes. The error says why there is no system prompt.
func (l *Loop) window(t *runs.Turn, set *tools.Set, history []claybot.Record) (w *window, prompt error) {
	w = &window{tools: set.Shown(set.Added(t.History)), total: ask(l.Window, t.Agent), scale: 1}
	switch {
	case w.total > 0:
	case l.ModelName != nil:
		w.total = llm.Window(l.ModelName(t.Agent))
	default:
		w.total = llm.DefaultWindow
	}
	if l.Prompt != nil {
		if w.prompt, prompt = l.Prompt(t); prompt != nil {
			w.prompt = ""
		}
	}
	w.format = formatPrompt(formatOf(t))
	w.frame(history)
	return w, prompt
}

func (p *pass) run(ctx context.Context) error {
	if err := p.useSkill(); err != nil {
		return err
	}
	for told := false; ; told = true {
		if err := p.act(ctx); err != nil {
			return err
		}
		if over, err := p.over(); over || err != nil {
			if err == nil {
				err = p.answered()
			}
			return err
		}
		if err := p.talk.progress.stuck(p.maxSteps); err != nil {
			return err
		}
		if p.talk.progress.steps > 0 {
			if err := p.inject(ctx); err != nil {
				return err
			}
		}
		if !told {
			if err := p.index(); err != nil {
				return err
			}
		}
		n := p.talk.progress.steps + 1
		if n > 1 { // groups may have been added, and permissions may have changed
			p.compaction.window.tools = p.calls.tools.Shown(p.calls.tools.Added(p.talk.all()))
		}
		err := p.node(ctx, nodeModel, n, n > 1, func() (string, error) { return p.answers.step(ctx) })
		if err != nil {
			return err
		}
	}
}

// over reports whether the run has its answer. The note of a call of tools.Finish becomes one; an
// answer without calls is pushed back as long as the run may, and the model can answer again.
func (p *pass) over() (bool, error) {
	g := p.talk.progress
	switch {
	case g.note != "" && len(g.pending) == 0:
		text := g.note
		if p.answers.chat.format != nil {
			text = unfenced(text)
		}
		return true, p.talk.emit(claybot.Record{
			Type: claybot.RecordAssistant, At: claybot.Now(), Run: p.turn.Run.ID, Step: g.steps + 1, Text: text, Stop: tools.Finish,
		})
	case !g.done:
		return false, nil
	case g.noted || g.pushed >= p.pushBacks || g.steps >= p.maxSteps || g.over > 0:
		return true, nil
	}
	return false, p.talk.emit(claybot.Record{Type: claybot.RecordSystem, At: claybot.Now(), Run: p.turn.Run.ID, Kind: claybot.KindPushBack, Text: pushBack})
}

// pushBack is what the model reads about an answer that was pushed back.
const pushBack = "This answer called no tool, so it was not taken, and the run goes on. Do what is left with your tools. " +
	"If nothing is left, call " + tools.Finish + " with your answer as the note."

// useSkill calls the tool that reads the skill whose command began the run, as if the model had,
// before the model is called for the first time.
func (p *pass) useSkill() error {
	skill := skillOf(p.turn)
	if skill == "" || p.talk.progress.steps > 0 {
		return nil
	}
	args, err := json.Marshal(map[string]string{"name": skill})
	if err != nil {
		return err
	}
	call := claybot.ToolCall{ID: llm.RepairCallID("", string(p.turn.Run.ID), p.talk.progress.ids), Name: tools.UseSkill, Args: string(args)}
	return p.talk.emit(claybot.Record{Type: claybot.RecordAssistant, At: claybot.Now(), Run: p.turn.Run.ID, Step: 1, ToolCalls: []claybot.ToolCall{call}})
}

// skillOf returns the skill whose command began the run of a turn; empty for none.
func skillOf(t *runs.Turn) string {
	for _, m := range t.Messages {
		if m.Skill != "" {
			return m.Skill
		}
	}
	return ""
}

// act gives the calls of the last answer their results, if it has any.
func (p *pass) act(ctx context.Context) error {
	if len(p.talk.progress.pending) == 0 {
		return nil
	}
	return p.node(ctx, nodeTools, p.talk.progress.steps, false, func() (string, error) { return "", p.calls.settle(ctx) })
}

// inject takes in the messages that joined the run; they are durable already.
func (p *pass) inject(ctx context.Context) error {
	more, err := p.turn.Journal.Inject(ctx)
	if err != nil {
		return fmt.Errorf("inject messages: %w", err)
	}
	for _, r := range more {
		p.talk.add(r)
	}
	return nil
}

// The two nodes of the loop, as events call them.
const (
	nodeModel = "model"
	nodeTools = "tools"
)

// node records the beginning and the end of a part of the loop; the beginning at once,
// with now, where a person may have to wait for the part and nothing else is stored
// before it.
func (p *pass) node(ctx context.Context, name string, iteration int, now bool, part func() (result string, err error)) error {
	began, result := time.Now(), ""
	err := p.turn.Emit(ctx, now, runs.NodeBegan(p.turn.Run.ID, name, iteration))
	if err == nil { // else it may be told later all the same, and nodes come in pairs
		result, err = part()
	}
	var wait *runs.WaitError
	switch {
	case errors.As(err, &wait):
		result = "waits"
	case ctx.Err() != nil:
		result = "cut off"
	case err != nil:
		result = "failed"
	}
	told := p.turn.Emit(ctx, false, runs.NodeEnded(p.turn.Run.ID, name, iteration, result, time.Since(began)))
	if err == nil {
		err = told
	}
	return err
}
