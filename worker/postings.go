package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/texts"
)

// maxReport is the maximum size of a final text in a report to another agent,
// in bytes.
const maxReport = 64 << 10

// posts returns the messages to other agents at the end of the run: an answer for each
// waiting run, a requested report, and the one notice of a failed subagent. They commit
// with the end, and their ids are derived from the run's, so each exists once.
func (e *ending) posts(ctx context.Context, o storage.Outcome) ([]storage.Posting, error) {
	posts := slices.Clone(e.again)
	j, subagents := e.job, e.worker.parts.Subagents
	awaited := false
	var report claybot.AgentID
	for _, m := range j.messages {
		if m.Awaited != nil {
			posts = append(posts, e.answerTo(*m.Awaited, o))
			still, err := subagents.Awaits(ctx, *m.Awaited)
			if err != nil {
				return nil, err
			}
			awaited = awaited || still
		}
		if m.Report != "" {
			report = m.Report
		}
	}
	var m claybot.AgentMessage
	switch {
	case awaited:
		return posts, nil
	case o.State == claybot.RunSucceeded && report != "":
		m = j.message(claybot.KindResult, "result", e.answer.report(), e.talk)
	case e.mustNotify(o, report):
		m = j.message(claybot.KindFailure, "failure", texts.SubagentFailed(j.agent.Descriptor, j.agent.ID, j.run.ID, whyEnded(o, "operator")), e.talk)
	}
	if m.Text == "" {
		return posts, nil
	}
	id := report
	if id == "" {
		id = j.agent.Descriptor.Parent
	}
	to, err := subagents.Recipient(ctx, j.agent.Descriptor, j.agent.ID, id)
	if to.ID == "" || err != nil {
		return posts, err
	}
	if chain := cmp.Or(j.agent.Descriptor.Root, j.agent.ID); to.Descriptor.Root == chain { // it goes on with the work of the same chain
		m.Budgets = j.work().Budgets(j.run.ID)
	}
	posting, err := e.worker.parts.Complete(ctx, to, m)
	return append(posts, posting), err
}

// mustNotify reports whether to notify another agent of the end: for any unintended
// failure of a subagent.
func (e *ending) mustNotify(o storage.Outcome, report claybot.AgentID) bool {
	if e.job.agent.Descriptor.Type != claybot.AgentSubagent && report == "" {
		return false
	}
	if f := e.job.firing(); f != nil && f.Quiet {
		return false
	}
	return o.State == claybot.RunFailed || o.State == claybot.RunCanceled && e.job.run.Cancel == people.Operator
}

// whyEnded returns why a run did not succeed: its error, or who stopped it.
func whyEnded(o storage.Outcome, by string) claybot.RunError {
	if o.Error != nil {
		return *o.Error
	}
	return claybot.RunError{Code: "canceled", Text: "stopped by the " + by}
}

// answerTo returns the answer for a run that waits for the end of this one.
func (e *ending) answerTo(a claybot.Awaited, o storage.Outcome) storage.Posting {
	j := e.job
	content := claybot.Result{
		OK: o.State == claybot.RunSucceeded, AgentID: j.agent.ID, RunID: j.run.ID, TokenUsage: o.Usage,
		Output: texts.Shorten(strings.TrimSpace(e.answer.text()), maxReport), Tainted: e.talk.tainted(), Private: e.talk.private(),
	}
	if o, ok := e.worker.engines.named(j.engine()).(runs.Outputter); ok && content.OK {
		content.Output = ""
		if content.Value, content.Tainted, content.Private = o.Output(e.turn()); json.Unmarshal(content.Value, &content.Output) == nil {
			content.Value = nil // a text
		}
	}
	if !content.OK {
		why := whyEnded(o, j.run.Cancel)
		content.Error = why.Code + ": " + connectors.OneLine(why.Text, 300)
		if o.Error == nil && j.run.Cancel == subagents.ByParent {
			content.Lost = claybot.LostStopped
		}
	}
	return storage.Posting{To: a.Agent, Message: claybot.AgentMessage{
		ID: a.ID, Type: claybot.MessageAnswer, Run: a.Run, At: claybot.Now(),
		From: claybot.Sender{Agent: j.agent.ID, Name: j.agent.Descriptor.Name}, Answer: &content,
	}}
}
