package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// maxReport is the most bytes of a final text that another agent is told.
const maxReport = 64 << 10

// commitEnd commits the end of the run with all that others must hear of it. An
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
				p.boxes.Wake()
			}
			return out, err
		}
	}
	p.log.Error("nobody can be told how the run ended")
	o.Posts = nil
	return p.Runs.Finish(ctx, p.box.Lease, p.run.ID, o)
}

// posts are the messages to other agents that an end of the run makes: an
// answer for each run that waits for it, a report where one was asked for, and
// the one notice of a failed background agent. They commit with the end, and
// their ids are made of the run's, so each exists once.
func (p *pass) posts(ctx context.Context, o storage.Outcome) ([]storage.Posting, error) {
	posts := slices.Clone(p.again)
	awaited := false
	var report claybot.AgentID
	for _, m := range p.messages {
		if m.Awaited != nil {
			posts = append(posts, p.answerTo(*m.Awaited, o))
			still, err := p.awaits(ctx, *m.Awaited)
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
		m = p.system(claybot.KindFailure, "failure", texts.HelperFailed(p.agent.Descriptor, p.agent.ID, p.run.ID, whyEnded(o)))
	}
	if m.Text == "" {
		return posts, nil
	}
	id := report
	if id == "" {
		id = p.agent.Descriptor.Parent
	}
	to, err := p.hearer(ctx, p.agent.Descriptor, p.agent.ID, id)
	if to.ID == "" || err != nil {
		return posts, err
	}
	posting, err := p.complete(ctx, to, m)
	return append(posts, posting), err
}

// awaits reports whether somebody still waits for the end of the run: his own
// has not ended, and he was not deleted.
func (s *AgentSystem) awaits(ctx context.Context, a claybot.Awaited) (bool, error) {
	run, err := s.Runs.Run(ctx, a.Run)
	if err != nil {
		return false, storage.Ignore(err, storage.ErrNotFound)
	}
	return !run.State.Ended(), nil
}

// mustTell reports whether an end is a failure that another agent hears of: any
// of a background agent that nobody wanted.
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

// hearer is who hears of the end of an agent's run: the agent id; where that is
// gone, the most recent foreground agent of the owner, or nobody.
func (s *AgentSystem) hearer(ctx context.Context, d claybot.Descriptor, self, id claybot.AgentID) (claybot.Agent, error) {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if err == nil {
		var archived bool
		if archived, err = s.archived(ctx, e); err == nil && !archived {
			return claybot.Agent{ID: id, Descriptor: e.Descriptor}, nil
		}
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return claybot.Agent{}, err
	}
	e, err = s.People.Recent(ctx, d, self)
	if errors.Is(err, storage.ErrNotFound) {
		s.Log.Warn("nobody is left to be told how the run of a background agent ended", "agent", self, "parent", id)
		return claybot.Agent{}, nil
	}
	return claybot.Agent{ID: e.ID, Descriptor: e.Descriptor}, err
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

// tainted reports whether the run has read texts of strangers, so that what it
// says to other agents carries that on.
func (p *pass) tainted() bool {
	return p.history != nil && tools.Tainted(p.history.Records())
}

// said is the final text of the run, shortened, without the word for silence.
func (p *pass) said() string {
	text := strings.TrimSpace(strings.Join(p.answer, ""))
	if isNoReply(text) {
		return ""
	}
	return shorten(text, maxReport)
}

// shorten cuts a text at a rune border.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + fmt.Sprintf("\n[… %d bytes left out]", len(text)-limit)
}

// answerTo is what a run is told that waits for the end of this one.
func (p *pass) answerTo(a claybot.Awaited, o storage.Outcome) storage.Posting {
	content := claybot.Answer{
		OK: o.State == claybot.RunSucceeded, AgentID: p.agent.ID, RunID: p.run.ID, TokenUsage: o.Usage,
		Output: shorten(strings.TrimSpace(strings.Join(p.answer, "")), maxReport), Tainted: p.tainted(),
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

// stopAwaited stops the subagents whose ends the ended run had waited for.
func (s *AgentSystem) stopAwaited(ctx context.Context, id claybot.AgentID, run claybot.RunID) {
	children, err := s.Index.Children(ctx, id)
	if err != nil {
		s.Log.Error("cannot look for the helpers of an ended run", "agent", id, "run", run, "err", err)
		return
	}
	for _, c := range children {
		if !c.Busy {
			continue
		}
		r, err := s.Inbox.Receipt(ctx, taskID(c.Descriptor.UID))
		if err != nil || r.Message.Awaited == nil || r.Message.Awaited.Run != run {
			continue // it was started for itself
		}
		s.stop(ctx, c, "parent")
	}
}

// stopOrphans stops subagents that are waited for by a run that has ended: the
// process died after that end and before it could stop them.
func (s *AgentSystem) stopOrphans(ctx context.Context) {
	for e, err := range s.Index.IndexedAgents(ctx) {
		if err != nil {
			s.Log.Error("cannot look for helpers that nobody waits for", "err", err)
			return
		}
		if e.Descriptor.Type != claybot.AgentSubagent || !e.Busy {
			continue
		}
		r, err := s.Inbox.Receipt(ctx, taskID(e.Descriptor.UID))
		if err != nil || r.Message.Awaited == nil {
			continue
		}
		if run, err := s.Runs.Run(ctx, r.Message.Awaited.Run); err == nil && run.State.Ended() {
			s.stop(ctx, e, "parent")
		}
	}
}

// stop ends what an agent does and drops what waits for it. It returns whether
// there was something to end; what fails is logged, as nobody can do more.
func (s *AgentSystem) stop(ctx context.Context, e storage.IndexEntry, by string) bool {
	dropped, err := s.Inbox.Drop(ctx, e.ID, "stopped")
	if err != nil {
		s.Log.Error("cannot drop what waits for a stopped agent", "agent", e.ID, "err", err)
	}
	s.reject(e.ID, ErrDropped, dropped...)
	done, err := s.boxes.Post(ctx, storage.Posting{To: e.ID, By: by, Message: claybot.AgentMessage{
		ID: claybot.MessageID("stop/" + runs.NewID()), Type: claybot.MessageCancel, At: claybot.Now(),
	}})
	if err != nil {
		s.Log.Error("cannot stop an agent", "agent", e.ID, "err", err)
	}
	if by == people.Operator && len(dropped) > 0 && done.Canceled == "" {
		s.tellLost(ctx, e, string(dropped[0]), claybot.RunError{Code: "canceled", Text: "stopped by the operator before it began"})
	}
	return done.Canceled != "" || len(dropped) > 0
}

// stopBelow stops all descendants of an agent and returns how many were at
// work.
func (s *AgentSystem) stopBelow(ctx context.Context, id claybot.AgentID, by string) int {
	children, err := s.Index.Children(ctx, id)
	if err != nil {
		s.Log.Error("cannot list the helpers of an agent", "agent", id, "err", err)
		return 0
	}
	n := 0
	for _, c := range children {
		if c.Busy && s.stop(ctx, c, by) {
			n++
		}
		n += s.stopBelow(ctx, c.ID, by)
	}
	return n
}

// busyBelow reports whether a descendant of an agent is at work.
func (s *AgentSystem) busyBelow(ctx context.Context, id claybot.AgentID) bool {
	children, err := s.Index.Children(ctx, id)
	if err != nil {
		return false // it only chooses the words of an answer
	}
	return slices.ContainsFunc(children, func(c storage.IndexEntry) bool { return c.Busy || s.busyBelow(ctx, c.ID) })
}

// tellFollower tells the connector that made the run's agent, or the instant
// that the run is, how it ended.
func (p *pass) tellFollower(o storage.Outcome) {
	name := string(p.agent.Descriptor.Type)
	if p.firing() != nil {
		name = string(claybot.AgentCron)
	}
	f, ok := p.connector(name).(connectors.Follower)
	if !ok {
		return
	}
	run := p.run
	run.State, run.Error, run.Output, run.Usage, run.Ended = o.State, o.Error, o.Output, o.Usage, claybot.Now()
	f.Ended(p.agent.Descriptor, run)
}
