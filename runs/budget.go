package runs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
)

// Keys of the questions about a budget that does not cover a step.
const (
	KeyAskToExtend = "budget" // the person: shall an operator be asked?
	KeyExtend      = "extend" // the operators
)

// ScopePlan is the scope of BudgetReached where the estimate of a plan is above the
// budget of plans.
const ScopePlan = "plan"

// A BudgetAsk is what a question about a budget is about. It is kept in the digest of
// the question, so that what was shown is done, and is read back from it.
type BudgetAsk struct {
	Key   string // of the budget
	Limit int64  // when it was asked, with extensions; -1 where the question does not say
	By    int64  // how much more an operator is asked for; 0 in the question to the person
}

const (
	aboutLimit     = "limit "
	aboutAsking    = "ask to extend "
	aboutExtending = "extend by "
)

// Digest is a as the digest of a question.
func (a BudgetAsk) Digest() string {
	at := fmt.Sprintf("%s%d ", aboutLimit, a.Limit)
	if a.By > 0 {
		return at + fmt.Sprintf("%s%d %s", aboutExtending, a.By, a.Key)
	}
	return at + aboutAsking + a.Key
}

// BudgetAskOf reads what a question asks about a budget; ok is false for a question
// about anything else.
func BudgetAskOf(q claybot.Question) (a BudgetAsk, ok bool) {
	if q.Key != KeyAskToExtend && q.Key != KeyExtend {
		return a, false
	}
	a.Limit = -1
	rest := q.Digest
	if after, found := strings.CutPrefix(rest, aboutLimit); found {
		number, tail, _ := strings.Cut(after, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return a, false
		}
		a.Limit, rest = n, tail
	}
	if q.Key == KeyAskToExtend {
		a.Key, ok = strings.CutPrefix(rest, aboutAsking)
		return a, ok && a.Key != ""
	}
	after, found := strings.CutPrefix(rest, aboutExtending)
	number, key, _ := strings.Cut(after, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	a.Key, a.By = key, n
	return a, found && err == nil && n > 0 && key != ""
}
