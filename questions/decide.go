package questions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// minPrefix is how much of an id names a question.
const minPrefix = 4

// allQuestions is more than are ever open; those of one person are found among all.
const allQuestions = 1_000_000

// A Decision is what /approve or /deny does to a question. It is stored with the command
// before it takes effect.
type Decision struct {
	Question string                `json:"question,omitempty"` // that is answered
	Approve  bool                  `json:"approve,omitempty"`
	Reason   string                `json:"reason,omitempty"`
	Scope    claybot.ApprovalScope `json:"scope,omitempty"`
	Args     string                `json:"args,omitempty"`
}

// Decision resolves /approve or /deny to a decision and its reply. It concerns the named
// approval, or the only one that is pending for this person, in any run. The decision is
// nil where there is nothing to do.
func (s *Questions) Decision(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (*Decision, string, error) {
	open, err := s.approvals(ctx, agent.Descriptor.OwnerID())
	if err != nil {
		return nil, "", err
	}
	text, args := m.Text, ""
	if at := strings.IndexByte(m.Text, '{'); at >= 0 && m.Command == "approve" {
		text, args = strings.TrimSpace(m.Text[:at]), strings.TrimSpace(m.Text[at:])
	}
	word, rest, _ := strings.Cut(text, " ")
	meant := slices.DeleteFunc(slices.Clone(open), func(q claybot.Question) bool {
		return len(word) < minPrefix || !strings.HasPrefix(q.ID, strings.ToLower(word))
	})
	switch {
	case len(meant) == 0 && m.Command == "approve" && word != "" && scopeOf(text) == claybot.ApproveOnce:
		if len(word) < minPrefix {
			return nil, texts.NoSuchRequest, nil
		}
		text, err := s.closedID(ctx, open, word, agent.Descriptor.OwnerID())
		return nil, cmp.Or(text, texts.NoSuchRequest), err
	case len(meant) == 0: // all of it is the reason
		rest = text
		if meant, err = s.readOf(ctx, open, agent, m); err != nil {
			return nil, "", err
		}
	}
	switch len(meant) {
	case 0:
		return nil, texts.NothingToSay, nil
	case 1:
	default:
		return nil, texts.Which(meant), nil
	}
	if m.Command == "approve" && args == "" && s.approvedBefore(meant[0], agent.Descriptor.OwnerID()) {
		return nil, texts.YouApproved, nil
	}
	return s.decided(ctx, meant[0], m.Command == "approve", strings.TrimSpace(rest), args)
}

// readOf returns the approvals that a person can mean who names none: those that they have
// read and, of these, preferably the ones that they have not approved before.
func (s *Questions) readOf(ctx context.Context, open []claybot.Question, agent claybot.Agent, m claybot.AgentMessage) (meant []claybot.Question, err error) {
	var before []claybot.Question
	for _, q := range open {
		read, err := s.readBefore(ctx, q, agent, m)
		switch {
		case err != nil:
			return nil, err
		case !read:
		case s.approvedBefore(q, agent.Descriptor.OwnerID()):
			before = append(before, q)
		default:
			meant = append(meant, q)
		}
	}
	if len(meant) == 0 {
		return before, nil
	}
	return meant, nil
}

// decided is the decision about one approval: what was said beside it is a reason
// for no, or the scope of a yes; args are edited arguments.
func (s *Questions) decided(ctx context.Context, about claybot.Question, yes bool, rest, args string) (*Decision, string, error) {
	o := &Decision{Question: about.ID, Approve: yes}
	if !o.Approve {
		o.Reason = rest
		return o, texts.Denied, nil
	}
	o.Scope = scopeOf(rest)
	switch {
	case rest != "" && o.Scope == claybot.ApproveOnce:
		return nil, texts.NoScope, nil
	case o.Scope != claybot.ApproveOnce && about.Once:
		return nil, texts.OnceOnly, nil
	case args == "":
		return o, texts.Allowed, nil
	}
	q, err := s.Asked.Question(ctx, o.Question)
	if err != nil {
		return nil, "", err
	}
	why, err := s.editFault(ctx, q, true, claybot.Answer{Scope: o.Scope, Args: args})
	if err != nil || why != "" {
		return nil, why, err
	}
	o.Args = args
	return o, texts.AllowedEdited, nil
}

// scopeOf is the scope that a word names; that of once for all others.
func scopeOf(word string) claybot.ApprovalScope {
	switch scope := claybot.ApprovalScope(strings.ToLower(strings.TrimSpace(word))); scope {
	case claybot.ApproveSession, claybot.ApproveAlways:
		return scope
	}
	return claybot.ApproveOnce
}

// readBefore reports whether a person could read a question before they wrote a message:
// all of it had been sent to a chat of theirs.
func (s *Questions) readBefore(ctx context.Context, q claybot.Question, agent claybot.Agent, m claybot.AgentMessage) (bool, error) {
	by := agent.Descriptor.OwnerID()
	for place := range 1 + len(q.Approvers) {
		if place > 0 && !slices.Contains(s.People.Identities(q.Approvers[place-1]), by) {
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
			continue // it was sent to another person
		}
		read := true
		for part := 1; part <= first.Parts && read; part++ {
			o, err := s.settled(ctx, questionOutgoing(q, place, part))
			if err != nil {
				return false, storage.Ignore(err, storage.ErrNotFound)
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
func (s *Questions) settled(ctx context.Context, id string) (o claybot.Outgoing, err error) {
	for range 40 {
		o, err = s.Outbox.OutgoingByID(ctx, id)
		if err != nil || o.State != claybot.SendAttempted {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return o, err
}

// grain is how coarse the times of messages are, in milliseconds: some platforms
// tell whole seconds.
const grain = 999

// approvals are the open ones that a person may answer, the oldest first.
func (s *Questions) approvals(ctx context.Context, by string) (mine []claybot.Question, err error) {
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
		if s.mayDecide(q.Question, e.Descriptor, by) {
			mine = append(mine, q.Question)
		}
	}
	return mine, nil
}

// Decide executes a decision. It is idempotent.
func (s *Questions) Decide(ctx context.Context, agent claybot.Agent, o Decision) error {
	a := claybot.Answer{Text: "deny", By: agent.Descriptor.OwnerID(), Via: claybot.ViaText, Reason: o.Reason, Scope: o.Scope, Args: o.Args}
	if o.Approve {
		a.Text = "approve"
	}
	err := s.AnswerQuestion(ctx, o.Question, a)
	if unfit := new(AnswerError); o.Args != "" && errors.As(err, &unfit) {
		s.Log.Warn("edited arguments no longer valid", "question", o.Question)
		return nil
	}
	if errors.Is(err, ErrApproved) || errors.Is(err, storage.ErrState) || errors.Is(err, storage.ErrNotFound) {
		return nil // it has an answer: this one, or an earlier one that its place shows
	}
	return err
}
