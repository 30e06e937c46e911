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
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// unfit begins what is said when a text does not answer the question that is
// open.
const unfit = "That does not fit: "

// answer takes the text of a message for the answer to what the agent asks. It
// reports whether it was one, or was told not to fit. A second text that does
// not fit ends the run that asks, and is a message like any other. A message
// that has an id is remembered with its answers.
func (c *completer) answer(r *http.Request, to agentsystem.Address, m claybot.Message, before string) (bool, error) {
	ctx, desk := r.Context(), c.api.Desk
	open, err := c.api.open(ctx, to)
	if err != nil || len(open) == 0 {
		return false, err
	}
	first := open[0] // all are of one run
	run, err := desk.Run(ctx, first.Run)
	if err != nil {
		return false, err
	}
	open = inOrder(open, run)
	values := readAnswers(open, m.Text)
	if m.ID != "" {
		err = desk.AnswerSaid(ctx, first.Run, values, m, web.User(r), claybot.ViaHTTP)
	} else {
		err = desk.AnswerRun(ctx, first.Run, values, web.User(r), claybot.ViaHTTP)
	}
	c.got = agentsystem.Accepted{Run: first.Run, Agent: first.Agent, Message: m.ID}
	var wrong *agentsystem.AnswerError
	switch {
	case errors.As(err, &wrong) && strings.HasPrefix(before, unfit):
		_, err := desk.CancelRun(ctx, first.Run, web.User(r))
		return false, err
	case errors.As(err, &wrong):
		c.instead = unfit + strings.Join(slices.Sorted(maps.Values(wrong.Faults)), " ") + "\n\n" + asked(questionsOf(open))
		return true, nil
	case errors.Is(err, storage.ErrState), errors.Is(err, storage.ErrNotFound): // somebody was faster
		return false, nil
	case err != nil:
		return false, err
	}
	left := slices.DeleteFunc(open, func(q storage.OpenQuestion) bool {
		_, byKey := values[q.Key]
		_, byID := values[q.ID]
		return byID || byKey && q.Key != ""
	})
	if len(left) > 0 {
		c.instead = asked(questionsOf(left))
		return true, nil
	}
	c.mine, c.after = true, run.LastSeq
	return true, nil
}

// again follows what came of a message before. One that answered some of several
// questions is told again which are left; of any other, the run tells it.
func (c *completer) again(ctx context.Context, got agentsystem.Accepted) error {
	c.got = got
	if len(got.Answers) == 0 || got.State != claybot.RunAwaiting {
		return nil
	}
	open, err := c.api.Desk.OpenQuestions(ctx, got.Agent)
	if err != nil {
		return err
	}
	run, err := c.api.Desk.Run(ctx, got.Run)
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

// open are the questions that the agent of an address asks, of one run, the
// oldest first.
func (a *api) open(ctx context.Context, to agentsystem.Address) ([]storage.OpenQuestion, error) {
	agent := to.Agent
	if to.Descriptor != nil {
		var err error
		agent, err = a.Desk.AgentOf(ctx, *to.Descriptor)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, nil // it is made by its first message
		}
		if err != nil {
			return nil, err
		}
	}
	all, err := a.Desk.OpenQuestions(ctx, agent)
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

// inOrder puts questions that were asked at once into the order in which their
// run asks them.
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

// readAnswers reads a text as answers by key: of several questions it may have
// a line "key: value" for each; else it answers the first.
func readAnswers(open []storage.OpenQuestion, text string) map[string]string {
	values := make(map[string]string)
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		key, v, ok := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		named := slices.ContainsFunc(open, func(q storage.OpenQuestion) bool { return q.Key != "" && q.Key == key })
		if len(open) < 2 || !ok || !named {
			return map[string]string{open[0].ID: strings.TrimSpace(text)}
		}
		values[key] = strings.TrimSpace(v)
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
