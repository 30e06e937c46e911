package questions

import (
	"cmp"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// ErrApproved says that this person has already approved the action, which needs another
// approver. Nothing is stored, and the question stays open.
var ErrApproved = errors.New("approved already by the same person")

// Respondents says who may answer which question.
type Respondents struct {
	people interface {
		Identities(owner string) []string
		IsOperator(owner string) bool
	}
}

// personOf returns the person whose question it is: the agent's own, or of a shared agent the
// one whose message its run answers.
func personOf(q claybot.Question, d claybot.Descriptor) string {
	return cmp.Or(q.Person, d.OwnerID())
}

// May reports whether a person, by owner id, may answer a question of an agent: its
// approvers, or else the person whose question it is. Whether a budget is extended, only those
// decide who are operators still.
func (r Respondents) May(q claybot.Question, d claybot.Descriptor, by string) bool {
	may := q.Approvers
	if len(may) == 0 {
		may = []string{personOf(q, d)}
	}
	_, ofBudget := runs.BudgetAskOf(q)
	ofBudget = ofBudget && len(q.Approvers) > 0
	return slices.ContainsFunc(may, func(owner string) bool {
		return slices.Contains(r.people.Identities(owner), by) && (!ofBudget || r.people.IsOperator(by))
	})
}

// mayDecide is May, and true for those who have approved before: they are not asked again,
// but may still deny.
func (r Respondents) mayDecide(q claybot.Question, d claybot.Descriptor, by string) bool {
	return r.May(q, d, by) || r.approvedBefore(q, by)
}

// approvedBefore reports whether a person has already approved the action of a question.
// Operators, who are indistinguishable, count as one person.
func (r Respondents) approvedBefore(q claybot.Question, by string) bool {
	return q.Type == claybot.QuestionConfirm && q.Need > 1 && r.approvers().Among(q.ApprovedBy, by)
}

func (r Respondents) approvers() tools.Approvers {
	return tools.Approvers{People: r.people.Identities}
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
