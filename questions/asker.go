package questions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

var _ tools.Questions = (*Asker)(nil)

// questionTime is how long a question without an expiry of its own is open.
const questionTime = 24 * time.Hour

// errNobody is the result for the model when a run has no reader.
var errNobody = errors.New("no person reads along in this run, so there is no one to ask; decide by yourself, or say in your answer what you would need to know")

// An Asker asks the questions of runs.
type Asker struct {
	ledger  *Ledger
	readers Readers
	work    *runs.AtWork
}

// Ask implements tools.Questions. The person is asked when the run is paused; earlier
// questions keep their expiry.
func (a *Asker) Ask(ctx context.Context, env tools.Env, qs []claybot.Question) (tools.Result, error) {
	t := a.work.Of(env.Run)
	if !t.Agent.Descriptor.Foreground() || !t.Person() || ofGroup(t.Owner()) {
		return tools.Result{}, errNobody
	}
	if len(qs) == 0 {
		return tools.Result{}, errors.New("there is nothing to ask")
	}
	for i := range qs {
		qs[i].ToolCallID = env.CallID
	}
	answers, wait, err := a.ask(ctx, t, env, qs)
	if err != nil || wait != nil {
		return tools.Result{Wait: wait}, err
	}
	return tools.Result{Text: answersText(qs, answers)}, nil
}

// ask returns the answers to the questions of a round, or what the run waits for.
func (a *Asker) ask(ctx context.Context, t runs.Work, round tools.Env, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	wait := claybot.Awaiting{Reason: claybot.AwaitApproval}
	answers := make([]claybot.Answer, 0, len(qs))
	for i, q := range qs {
		q.ID = round.UID(i)
		if t.Agent.Descriptor.Shared() {
			q.Person = t.Owner()
		}
		if known, ok := t.Asked[q.ID]; ok && known.Expires != 0 {
			q = known
		}
		if q.Expires == 0 {
			q.Expires = claybot.At(time.Now().Add(questionTime))
		}
		if q.Type != claybot.QuestionConfirm {
			wait.Reason = claybot.AwaitInfo
		}
		wait.Answers = append(wait.Answers, q.AnswerID())
		given, err := a.ledger.stored(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		if given != nil {
			answers = append(answers, *given)
			continue
		}
		wait.Questions = append(wait.Questions, q)
		if wait.Until == 0 || q.Expires < wait.Until {
			wait.Until = q.Expires
		}
	}
	if len(wait.Questions) > 0 {
		return nil, &wait, nil
	}
	return answers, nil, nil
}

// ofGroup reports whether an owner is a group that shares an agent, which cannot answer.
func ofGroup(owner string) bool {
	_, group := claybot.SharedPlace(owner)
	return group
}

// AskFor asks on behalf of a run. The approver for a subagent or task is asked where its
// owner wrote last. A run of a shared agent that answers no member can ask approvers only.
func (a *Asker) AskFor(ctx context.Context, w runs.Work, round tools.Env, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	for i, q := range qs {
		owner := w.Owner()
		if len(q.Approvers) > 0 || w.Agent.Descriptor.Foreground() && !ofGroup(owner) {
			continue
		}
		if owner == "" {
			return nil, nil, runs.ErrNobody
		}
		if _, err := a.readers.PlaceOf(ctx, owner); err != nil {
			if errors.Is(err, storage.ErrNotFound) {
				err = runs.ErrNobody
			}
			return nil, nil, err
		}
		qs[i].Approvers = []string{owner}
	}
	return a.ask(ctx, w, round, qs)
}

// answersText returns the result of a call for the model: the answers by key, in the order
// of the questions, and which of them are defaults.
func answersText(qs []claybot.Question, answers []claybot.Answer) string {
	var b strings.Builder
	var silent []string
	for i, q := range qs {
		name := texts.QuestionKey(q)
		key, _ := json.Marshal(name) // strings always marshal
		value := answers[i].Value
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
		if answers[i].Via == claybot.ViaDefault {
			silent = append(silent, name)
		}
	}
	b.WriteByte('}')
	if len(silent) > 0 {
		fmt.Fprintf(&b, "\n(no answer in time; this is the default: %s)", strings.Join(silent, ", "))
	}
	return b.String()
}
