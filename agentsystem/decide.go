package agentsystem

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// minPrefix is how much of an id names a question.
const minPrefix = 4

// allQuestions is more than anybody has open; what is asked of one person is
// found among all of them.
const allQuestions = 1_000_000

// decision is what /approve or /deny does and says: about the approval that is
// named, or the only one that waits for this person, in whatever run it was asked
// for. The order is nil where there is nothing to do.
func (s *System) decision(ctx context.Context, agent claybot.Agent, m claybot.Message) (*order, string, error) {
	open, err := s.approvals(ctx, agent.Descriptor.OwnerID())
	if err != nil {
		return nil, "", err
	}
	text, args := m.Text, ""
	if at := strings.IndexByte(m.Text, '{'); at >= 0 && m.Command == "approve" {
		text, args = strings.TrimSpace(m.Text[:at]), strings.TrimSpace(m.Text[at:])
	}
	word, rest, _ := strings.Cut(text, " ")
	var meant []claybot.Question
	for _, q := range open {
		if len(word) >= minPrefix && strings.HasPrefix(q.ID, strings.ToLower(word)) {
			meant = append(meant, q)
		}
	}
	switch {
	case len(meant) == 0 && m.Command == "approve" && word != "" && scopeOf(text) == claybot.ApproveOnce:
		return nil, textNoSuchRequest, nil
	case len(meant) == 0: // all of it is the reason; only what was read can be meant
		rest = text
		for _, q := range open {
			read, err := s.readBefore(ctx, q, agent, m)
			if err != nil {
				return nil, "", err
			}
			if read {
				meant = append(meant, q)
			}
		}
	}
	switch len(meant) {
	case 0:
		return nil, textNothingToSay, nil
	case 1:
	default:
		return nil, textWhich(meant), nil
	}
	return s.decided(ctx, meant[0], m.Command == "approve", strings.TrimSpace(rest), args)
}

// decided is the decision about one approval: what was said beside it is a reason
// for no, or the scope of a yes; args are edited arguments.
func (s *System) decided(ctx context.Context, about claybot.Question, yes bool, rest, args string) (*order, string, error) {
	o := &order{Question: about.ID, Approve: yes}
	if !o.Approve {
		o.Reason = rest
		return o, textDenied, nil
	}
	o.Scope = scopeOf(rest)
	switch {
	case rest != "" && o.Scope == claybot.ApproveOnce:
		return nil, textNoScope, nil
	case o.Scope != claybot.ApproveOnce && about.Once:
		return nil, textOnceOnly, nil
	case args == "":
		return o, textAllowed, nil
	}
	q, err := s.Asked.Question(ctx, o.Question)
	if err != nil {
		return nil, "", err
	}
	why, err := s.editFault(ctx, q, true, saidBy{scope: o.Scope, args: args})
	if err != nil || why != "" {
		return nil, why, err
	}
	o.Args = args
	return o, textAllowedEdited, nil
}

// Lacking is how many more people must approve the action of a question, somebody
// else each, once this was said to it; 0 as well for what is no approval.
func (s *System) Lacking(q claybot.Question, a Said) int {
	if v, err := q.Check(a.Value, s.zone()); err != nil || q.Type != claybot.QuestionConfirm || string(v) != "true" {
		return 0
	}
	return tools.Approvers{People: s.people}.Lacking(q, a.By, a.Args != "")
}

// scopeOf is the scope that a word names; that of once for all others.
func scopeOf(word string) claybot.ApprovalScope {
	switch scope := claybot.ApprovalScope(strings.ToLower(strings.TrimSpace(word))); scope {
	case claybot.ApproveSession, claybot.ApproveAlways:
		return scope
	}
	return claybot.ApproveOnce
}

// readBefore reports whether a person could read a question before he wrote a
// message: all of it had been sent to a chat of his.
func (s *System) readBefore(ctx context.Context, q claybot.Question, agent claybot.Agent, m claybot.Message) (bool, error) {
	by := agent.Descriptor.OwnerID()
	for place := range 1 + len(q.Approvers) {
		if place > 0 && !slices.Contains(s.people(q.Approvers[place-1]), by) {
			continue
		}
		first, err := s.Outbox.OutgoingByID(ctx, questionOutgoing(q, place, 1))
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		if place == 0 && claybot.User(first.Route.Connector, first.Route.ChannelID, first.Route.UserID).OwnerID() != by {
			continue // it was sent to somebody else
		}
		read := true
		for part := 1; part <= first.Parts && read; part++ {
			o, err := s.settled(ctx, questionOutgoing(q, place, part))
			if err != nil {
				return false, ignore(err, storage.ErrNotFound)
			}
			read = o.State == claybot.SendSent && o.Tried <= m.At+grain
		}
		if read {
			return true, nil
		}
	}
	return false, nil
}

// settled is an outgoing message; one that is on its way is given a moment to
// arrive, for its reader may be quicker than its receipt.
func (s *System) settled(ctx context.Context, id string) (o claybot.Outgoing, err error) {
	for range 40 {
		o, err = s.Outbox.OutgoingByID(ctx, id)
		if err != nil || o.State != claybot.SendAttempted {
			break
		}
		pause(ctx, 50*time.Millisecond)
	}
	return o, err
}

// grain is how coarse the times of messages are, in milliseconds: some platforms
// tell whole seconds.
const grain = 999

// approvals are the open ones that a person may answer, the oldest first.
func (s *System) approvals(ctx context.Context, by string) (mine []claybot.Question, err error) {
	all, err := s.Asked.OpenQuestions(ctx, "", allQuestions)
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		if q.Type != claybot.QuestionConfirm || q.Expires <= claybot.Now() {
			continue
		}
		e, err := s.Index.IndexedAgentByID(ctx, q.Agent)
		if err != nil {
			if errors.Is(err, storage.ErrNotFound) {
				continue
			}
			return nil, err
		}
		if s.mayAnswer(q.Question, e.Descriptor, by) {
			mine = append(mine, q.Question)
		}
	}
	return mine, nil
}
