package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// unfit starts the reply to a text that does not answer the pending question.
	unfit = "That does not fit: "
	// reserved starts the reply while only operators can answer the pending questions.
	reserved = "No message answers what waits here, so it changes nothing.\n\n"
)

// answer treats the text of a message as the answer to the agent's pending questions. It
// reports whether it handled the message. A second invalid answer ends the run that asks
// and becomes an ordinary message; while only operators can answer, it never does. A
// message with an id is stored together with its answers.
func (c *completer) answer(r *http.Request, to agentsystem.Address, m claybot.AgentMessage, before string) (bool, error) {
	ctx := r.Context()
	open, err := c.completions.open(ctx, to)
	if err != nil || len(open) == 0 {
		return false, err
	}
	if len(m.Files) > 0 {
		return false, bad("A question is pending, and its answer has no images or files: "+asked(questionsOf(open)), "Answer it with a text first.")
	}
	first := open[0] // all are of one run
	run, err := c.completions.runs.Run(ctx, first.Run)
	if err != nil {
		return false, err
	}
	open = inOrder(open, run)
	values := readAnswers(open, m.Text)
	c.got = agentsystem.Accepted{Run: first.Run, Agent: first.Agent, Message: m.ID}
	if len(values) == 0 {
		c.instead = reserved + asked(questionsOf(open))
		return true, nil
	}
	if m.ID != "" {
		err = c.completions.questions.AnswerSaid(ctx, first.Run, values, m, web.User(r), claybot.ViaHTTP)
	} else {
		err = c.completions.questions.AnswerRun(ctx, first.Run, values, web.User(r), claybot.ViaHTTP, false)
	}
	var wrong *questions.AnswerError
	switch {
	case errors.As(err, &wrong) && strings.HasPrefix(before, unfit):
		_, err := c.completions.control.CancelRun(ctx, first.Run, web.User(r))
		return false, err
	case errors.As(err, &wrong):
		c.instead = unfit + strings.Join(slices.Sorted(maps.Values(wrong.Faults)), " ") + "\n\n" + asked(questionsOf(open))
		return true, nil
	case errors.Is(err, storage.ErrState), errors.Is(err, storage.ErrNotFound): // answered concurrently
		return false, nil
	case err != nil:
		return false, err
	}
	left := slices.DeleteFunc(open, func(q storage.OpenQuestion) bool {
		_, done := values[q.ID]
		return done
	})
	if len(left) > 0 {
		c.instead = asked(questionsOf(left))
		return true, nil
	}
	c.mine, c.after = true, run.LastSeq
	return true, nil
}

// again continues from the outcome of an earlier message. One that answered some of
// several questions gets the remaining ones again; for any other, it follows the run.
func (c *completer) again(ctx context.Context, got agentsystem.Accepted) error {
	c.got = got
	if len(got.Answers) == 0 || got.State != claybot.RunAwaiting {
		return nil
	}
	open, err := c.completions.questions.OpenQuestions(ctx, got.Agent)
	if err != nil {
		return err
	}
	run, err := c.completions.runs.Run(ctx, got.Run)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(q storage.OpenQuestion) bool {
		return q.Run != got.Run || slices.Contains(got.Answers, q.ID)
	})
	if len(open) > 0 {
		c.instead = asked(questionsOf(inOrder(open, run)))
	}
	return nil
}

// open returns the pending questions of the agent of an address, all of one run, oldest
// first.
func (a *completions) open(ctx context.Context, to agentsystem.Address) ([]storage.OpenQuestion, error) {
	agent := to.Agent
	if to.Descriptor != nil {
		var err error
		agent, err = a.agents.AgentOf(ctx, *to.Descriptor)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, nil // the first message creates the agent
		}
		if err != nil {
			return nil, err
		}
	}
	all, err := a.questions.OpenQuestions(ctx, agent)
	if err != nil {
		return nil, err
	}
	var open []storage.OpenQuestion
	for _, q := range all {
		if (q.Expires == 0 || q.Expires > claybot.Now()) && (len(open) == 0 || open[0].Run == q.Run) {
			open = append(open, q)
		}
	}
	return open, nil
}

// inOrder sorts questions that were asked at once in the order of their run.
func inOrder(open []storage.OpenQuestion, run claybot.Run) []storage.OpenQuestion {
	place := make(map[string]int)
	if run.Awaiting != nil {
		for i, q := range run.Awaiting.Questions {
			place[q.ID] = i
		}
	}
	slices.SortStableFunc(open, func(x, y storage.OpenQuestion) int { return place[x.ID] - place[y.ID] })
	return open
}

// readAnswers parses a text as answers by question id: with several questions it may have
// a line "key: value" for each; otherwise it answers the first. It returns none if that
// would answer a question for operators.
func readAnswers(open []storage.OpenQuestion, text string) map[string]string {
	first := slices.IndexFunc(open, func(q storage.OpenQuestion) bool { return !questions.Reserved(q.Question) })
	if first < 0 {
		return nil
	}
	whole := map[string]string{open[first].ID: strings.TrimSpace(text)}
	values := make(map[string]string)
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		key, v, ok := strings.Cut(line, ":")
		i := slices.IndexFunc(open, func(q storage.OpenQuestion) bool {
			return q.Key != "" && strings.EqualFold(q.Key, strings.TrimSpace(key))
		})
		switch {
		case len(open) < 2 || !ok || i < 0:
			return whole
		case questions.Reserved(open[i].Question):
			return nil
		}
		values[open[i].ID] = strings.TrimSpace(v)
	}
	return values
}

func questionsOf(open []storage.OpenQuestion) []claybot.Question {
	all := make([]claybot.Question, len(open))
	for i, q := range open {
		all[i] = q.Question
	}
	return all
}
