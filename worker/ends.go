package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// maxReport limits the bytes of a final text in a report to another agent.
const maxReport = 64 << 10

// commitEnd commits the end of the run together with its notices to other agents. An
// agent that vanishes in between is looked past.
func (p *pass) commitEnd(ctx context.Context, o storage.Outcome) ([]claybot.Outgoing, error) {
	for range 3 {
		var err error
		if o.Posts, err = p.posts(ctx, o); err != nil {
			return nil, err
		}
		out, err := p.Runs.Finish(ctx, p.box.Lease, p.run.ID, o)
		if !errors.Is(err, storage.ErrNotFound) || len(o.Posts) == 0 {
			if err == nil && len(o.Posts) > 0 {
				p.Boxes.Wake()
			}
			return out, err
		}
	}
	p.log.Error("no recipient for the end of the run")
	o.Posts = nil
	return p.Runs.Finish(ctx, p.box.Lease, p.run.ID, o)
}

// posts are the messages to other agents that an end of the run makes: an
// answer for each run that waits for it, a report where one was asked for, and
// the one notice of a failed subagent. They commit with the end, and
// their ids are made of the run's, so each exists once.
func (p *pass) posts(ctx context.Context, o storage.Outcome) ([]storage.Posting, error) {
	posts := slices.Clone(p.again)
	awaited := false
	var report claybot.AgentID
	for _, m := range p.messages {
		if m.Awaited != nil {
			posts = append(posts, p.answerTo(*m.Awaited, o))
			still, err := p.Subagents.Awaits(ctx, *m.Awaited)
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
		m = p.system(claybot.KindResult, "result", p.said())
	case p.mustTell(o, report):
		m = p.system(claybot.KindFailure, "failure", texts.SubagentFailed(p.agent.Descriptor, p.agent.ID, p.run.ID, whyEnded(o)))
	}
	if m.Text == "" {
		return posts, nil
	}
	id := report
	if id == "" {
		id = p.agent.Descriptor.Parent
	}
	to, err := p.Subagents.Hearer(ctx, p.agent.Descriptor, p.agent.ID, id)
	if to.ID == "" || err != nil {
		return posts, err
	}
	posting, err := p.Complete(ctx, to, m)
	return append(posts, posting), err
}

// mustTell reports whether an end is a failure that another agent is notified of: any
// unintended one of a subagent.
func (p *pass) mustTell(o storage.Outcome, report claybot.AgentID) bool {
	if p.agent.Descriptor.Type != claybot.AgentSubagent && report == "" {
		return false
	}
	if f := p.firing(); f != nil && f.Quiet {
		return false
	}
	return o.State == claybot.RunFailed || o.State == claybot.RunCanceled && p.run.Cancel == people.Operator
}

// whyEnded is why a run did not succeed.
func whyEnded(o storage.Outcome) claybot.RunError {
	if o.Error != nil {
		return *o.Error
	}
	return claybot.RunError{Code: "canceled", Text: "stopped by the operator"}
}

// system makes the message about the run that has a kind; its id exists once
// for each run.
func (p *pass) system(kind claybot.SystemKind, prefix, text string) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: claybot.MessageID(fmt.Sprintf("%s/%s", prefix, p.run.ID)), Type: claybot.MessageSystem, Kind: kind,
		From: claybot.Sender{Agent: p.agent.ID, Name: p.agent.Descriptor.Name},
		Text: text, At: claybot.Now(), Hops: p.work().Hops(), Tainted: p.tainted(),
	}
}

// tainted reports whether the run has read untrusted content, so that what it
// says to other agents carries that on.
func (p *pass) tainted() bool {
	return p.history != nil && tools.Tainted(p.history.Records())
}

// said is the final text of the run, shortened, without the word for silence.
func (p *pass) said() string {
	text := strings.TrimSpace(strings.Join(p.answer, ""))
	if runs.IsNoReply(text) {
		return ""
	}
	return texts.Shorten(text, maxReport)
}

// answerTo returns the answer for a run that waits for the end of this one.
func (p *pass) answerTo(a claybot.Awaited, o storage.Outcome) storage.Posting {
	content := claybot.Answer{
		OK: o.State == claybot.RunSucceeded, AgentID: p.agent.ID, RunID: p.run.ID, TokenUsage: o.Usage,
		Output: texts.Shorten(strings.TrimSpace(strings.Join(p.answer, "")), maxReport), Tainted: p.tainted(),
	}
	if !content.OK {
		why := whyEnded(o)
		if o.Error == nil {
			why.Text = "stopped by the " + p.run.Cancel
		}
		content.Error = why.Code + ": " + connectors.OneLine(why.Text, 300)
	}
	return storage.Posting{To: a.Agent, Message: answerMessage(a, p.agent, content)}
}

// answerMessage is the message that resumes a paused run.
func answerMessage(a claybot.Awaited, from claybot.Agent, content claybot.Answer) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: a.ID, Type: claybot.MessageAnswer, Run: a.Run, At: claybot.Now(),
		From: claybot.Sender{Agent: from.ID, Name: from.Descriptor.Name}, Answer: &content,
	}
}

// tellFollower tells the connector that made the run's agent, or the instant
// that the run is, how it ended.
func (p *pass) tellFollower(o storage.Outcome) {
	name := string(p.agent.Descriptor.Type)
	if p.firing() != nil {
		name = string(claybot.AgentCron)
	}
	f, ok := p.Connector(name).(connectors.Follower)
	if !ok {
		return
	}
	run := p.run
	run.State, run.Error, run.Output, run.Usage, run.Ended = o.State, o.Error, o.Output, o.Usage, claybot.Now()
	f.Ended(p.agent.Descriptor, run)
}
