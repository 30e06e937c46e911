package questions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// ErrApproved says that this person has already approved the action, which needs another
// approver. Nothing is stored, and the question stays open.
var ErrApproved = errors.New("approved already by the same person")

// Lacking returns how many more people must approve the action of a question after this
// reply; 0 if it is no approval.
func (s *Questions) Lacking(q claybot.Question, a claybot.Answer) int {
	if v, err := q.Check(a.Text, s.Zone()); err != nil || q.Type != claybot.QuestionConfirm || string(v) != "true" {
		return 0
	}
	return tools.Approvers{People: s.People.Identities}.Lacking(q, a.By, a.Args != "")
}

// approvedBefore reports whether a person has already approved the action of a question.
// Operators, who are indistinguishable, count as one person.
func (s *Questions) approvedBefore(q claybot.Question, by string) bool {
	return q.Type == claybot.QuestionConfirm && q.Need > 1 && tools.Approvers{People: s.People.Identities}.Among(q.ApprovedBy, by)
}

// mayDecide is MayAnswer, and true for those who have approved before: they are not asked
// again, but may still deny.
func (s *Questions) mayDecide(q claybot.Question, d claybot.Descriptor, by string) bool {
	return s.MayAnswer(q, d, by) || s.approvedBefore(q, by)
}

// NextApproval returns the open question that asks another person to approve the action of
// q; false where there is none.
func NextApproval(q claybot.Question, run claybot.RunID, open []storage.OpenQuestion) (storage.OpenQuestion, bool) {
	i := slices.IndexFunc(open, func(o storage.OpenQuestion) bool {
		return o.Run == run && o.Answer == nil && follows(o.Question, q)
	})
	if i < 0 {
		return storage.OpenQuestion{}, false
	}
	return open[i], true
}

// follows reports whether an approval is asked for because the one that was asked
// for before, in the same run, was given and is not enough.
func follows(q, before claybot.Question) bool {
	return q.ID != before.ID && q.Type == claybot.QuestionConfirm && before.Type == q.Type && q.Need > 1 && before.Need > 1 &&
		len(q.ApprovedBy) > 0 && q.ToolCallID == before.ToolCallID && q.Tool == before.Tool
}

// closedID returns the reply to an approval of a question that has an answer, by the
// beginning of its id; empty where none of the open approvals follows it.
func (s *Questions) closedID(ctx context.Context, open []claybot.Question, word, by string) (string, error) {
	for _, q := range open {
		if q.Need < 2 || len(q.ApprovedBy) == 0 {
			continue
		}
		stored, err := s.Asked.Question(ctx, q.ID)
		if err != nil {
			return "", err
		}
		records, err := s.Agents.Records(ctx, stored.Agent)
		if err != nil {
			return "", fmt.Errorf("read what run %s asked: %w", stored.Run, err)
		}
		before := slices.ContainsFunc(records, func(r claybot.Record) bool {
			return r.Type == claybot.RecordQuestion && r.Run == stored.Run && r.Question != nil &&
				strings.HasPrefix(r.Question.ID, strings.ToLower(word)) && follows(q, *r.Question)
		})
		switch {
		case before && s.approvedBefore(q, by):
			return texts.YouApproved, nil
		case before:
			return texts.Followed(q), nil
		}
	}
	return "", nil
}

// editFault says why an action cannot be approved with other arguments; empty
// when it can. The question stays open then.
func (s *Questions) editFault(ctx context.Context, q storage.OpenQuestion, yes bool, a claybot.Answer) (string, error) {
	switch {
	case !yes:
		return texts.EditDenied, nil
	case q.Type != claybot.QuestionConfirm || q.Tool == "" || q.Args == "" || s.CheckEdit == nil:
		return texts.NoEdit, nil
	case a.Scope != claybot.ApproveOnce:
		return texts.EditOnce, nil
	}
	agent, err := s.Lookup.Agent(ctx, q.Agent)
	if err != nil {
		return "", err
	}
	if err := s.CheckEdit(agent, claybot.ToolCall{ID: q.ToolCallID, Name: q.Tool, Args: a.Args}); err != nil {
		return texts.InvalidEdit(err), nil
	}
	return "", nil
}
