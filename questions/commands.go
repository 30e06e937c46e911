package questions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// minPrefix is how much of an id names a question.
const minPrefix = 4

// allQuestions is more than are ever open; those of one person are found among all.
const allQuestions = 1_000_000

// Commands are /approve and /deny.
type Commands struct {
	answers     *Answers
	respondents Respondents
	notices     *Notices
	ledger      *Ledger
	agents      Agents
	log         *slog.Logger
}

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
// nil where there is nothing to do, and for a program that may not approve.
func (c *Commands) Decision(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (*Decision, string, error) {
	if m.From.Program {
		return nil, texts.Of(ctx).In(texts.NotByProgram), nil
	}
	by := m.Speaker(agent.Descriptor)
	open, err := c.approvals(ctx, by)
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
			return nil, texts.Of(ctx).In(texts.NoSuchRequest), nil
		}
		text, err := c.closedID(ctx, open, word, by)
		return nil, cmp.Or(text, texts.Of(ctx).In(texts.NoSuchRequest)), err
	case len(meant) == 0: // all of it is the reason
		rest = text
		if meant, err = c.readOf(ctx, open, agent, m); err != nil {
			return nil, "", err
		}
	}
	switch len(meant) {
	case 0:
		return nil, texts.Of(ctx).In(texts.NothingToSay), nil
	case 1:
	default:
		return nil, texts.Of(ctx).Which(meant), nil
	}
	if m.Command == "approve" && args == "" && c.respondents.approvedBefore(meant[0], by) {
		return nil, texts.Of(ctx).In(texts.YouApproved), nil
	}
	d, text, err := c.decided(ctx, meant[0], m.Command == "approve", strings.TrimSpace(rest), args)
	if d != nil && d.Scope == claybot.ApproveAlways && m.From.NoRules {
		return nil, texts.Of(ctx).In(texts.NotAlways), nil
	}
	return d, text, err
}

// readOf returns the approvals that a person can mean who names none: those that they have
// read and, of these, preferably the ones that they have not approved before.
func (c *Commands) readOf(ctx context.Context, open []claybot.Question, agent claybot.Agent, m claybot.AgentMessage) (meant []claybot.Question, err error) {
	var before []claybot.Question
	for _, q := range open {
		read, err := c.notices.readBefore(ctx, q, agent, m)
		switch {
		case err != nil:
			return nil, err
		case !read:
		case c.respondents.approvedBefore(q, m.Speaker(agent.Descriptor)):
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

// decided returns the decision about one approval. rest is the reason of a denial or the
// scope of an approval; args are edited arguments.
func (c *Commands) decided(ctx context.Context, about claybot.Question, yes bool, rest, args string) (*Decision, string, error) {
	o := &Decision{Question: about.ID, Approve: yes}
	if !o.Approve {
		o.Reason = rest
		return o, texts.Of(ctx).In(texts.Denied), nil
	}
	o.Scope = scopeOf(rest)
	switch {
	case rest != "" && o.Scope == claybot.ApproveOnce:
		return nil, texts.Of(ctx).In(texts.NoScope), nil
	case o.Scope != claybot.ApproveOnce && about.Once:
		return nil, texts.Of(ctx).In(texts.OnceOnly), nil
	case args == "":
		return o, texts.Of(ctx).In(texts.Allowed), nil
	}
	q, err := c.answers.Question(ctx, o.Question)
	if err != nil {
		return nil, "", err
	}
	why, err := c.answers.editFault(ctx, q, true, claybot.Answer{Scope: o.Scope, Args: args})
	if err != nil || why != "" {
		return nil, why, err
	}
	o.Args = args
	return o, texts.Of(ctx).In(texts.AllowedEdited), nil
}

// scopeOf returns the scope that a word names, or ApproveOnce.
func scopeOf(word string) claybot.ApprovalScope {
	switch scope := claybot.ApprovalScope(strings.ToLower(strings.TrimSpace(word))); scope {
	case claybot.ApproveSession, claybot.ApproveAlways:
		return scope
	}
	return claybot.ApproveOnce
}

// approvals returns the open approvals that a person may answer, the oldest first.
func (c *Commands) approvals(ctx context.Context, by string) (mine []claybot.Question, err error) {
	all, err := c.ledger.asked.OpenQuestions(ctx, "", allQuestions)
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		if q.Type != claybot.QuestionConfirm || q.Expires <= claybot.Now() {
			continue
		}
		e, err := c.ledger.index.IndexedAgentByID(ctx, q.Agent)
		if err != nil {
			if errors.Is(err, storage.ErrNotFound) {
				continue
			}
			return nil, err
		}
		if c.respondents.mayDecide(q.Question, e.Descriptor, by) {
			mine = append(mine, q.Question)
		}
	}
	return mine, nil
}

// Decide executes a decision of a person. It is idempotent.
func (c *Commands) Decide(ctx context.Context, by string, o Decision) error {
	a := claybot.Answer{Text: "deny", By: by, Via: claybot.ViaText, Reason: o.Reason, Scope: o.Scope, Args: o.Args}
	if o.Approve {
		a.Text = "approve"
	}
	err := c.answers.AnswerQuestion(ctx, o.Question, a)
	if unfit := new(AnswerError); o.Args != "" && errors.As(err, &unfit) {
		c.log.Warn("edited arguments no longer valid", "question", o.Question)
		return nil
	}
	if errors.Is(err, ErrApproved) || errors.Is(err, storage.ErrState) || errors.Is(err, storage.ErrNotFound) {
		return nil // it has an answer: this one, or an earlier one that its message shows
	}
	return err
}

// closedID returns the reply to an approval of a question that has an answer, by the
// beginning of its id; empty where none of the open approvals follows it.
func (c *Commands) closedID(ctx context.Context, open []claybot.Question, word, by string) (string, error) {
	for _, q := range open {
		if q.Need < 2 || len(q.ApprovedBy) == 0 {
			continue
		}
		stored, err := c.answers.Question(ctx, q.ID)
		if err != nil {
			return "", err
		}
		records, err := c.agents.Records(ctx, stored.Agent)
		if err != nil {
			return "", fmt.Errorf("read what run %s asked: %w", stored.Run, err)
		}
		before := slices.ContainsFunc(records, func(r claybot.Record) bool {
			return r.Type == claybot.RecordQuestion && r.Run == stored.Run && r.Question != nil &&
				strings.HasPrefix(r.Question.ID, strings.ToLower(word)) && follows(q, *r.Question)
		})
		switch {
		case before && c.respondents.approvedBefore(q, by):
			return texts.Of(ctx).In(texts.YouApproved), nil
		case before:
			return texts.Of(ctx).Followed(q), nil
		}
	}
	return "", nil
}
