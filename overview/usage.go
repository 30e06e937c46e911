package overview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// usage answers /usage with what a person has spent this month in all their conversations, and
// how their budgets stand. Where others read as well, it tells only of the conversation there.
func (o *Answers) usage(ctx context.Context, agent claybot.Agent) (string, error) {
	v := texts.Of(ctx)
	if o.Reports.Spent == nil {
		return v.In(texts.NoUsage), nil
	}
	d := agent.Descriptor
	alone := o.People.AudienceOf(d, claybot.Route{}).Place == ""
	q := storage.SpentQuery{By: []string{storage.ByDay}, Agent: agent.ID}
	if alone && d.OwnerID() != "" {
		q.Agent, q.Owners = "", o.People.Identities(d.OwnerID())
	}
	today := time.Now().UTC().Truncate(24 * time.Hour) // the store sums up by days in UTC
	month := today.AddDate(0, 0, 1-today.Day())
	q.From = month.Format(time.DateOnly)
	days, err := o.Reports.Spent(ctx, q)
	if err != nil {
		return "", fmt.Errorf("read the usage of %s: %w", agent.ID, err)
	}
	var ofDay, ofMonth claybot.Usage
	for _, s := range days {
		if ofMonth = ofMonth.Add(s.Usage); s.Day == today.Format(time.DateOnly) {
			ofDay = s.Usage
		}
	}
	head := texts.UsageHere
	if alone {
		head = texts.UsageOwn
	}
	lines := []string{v.In(head), "", "- " + v.Spent(claybot.At(today), ofDay)}
	if month != today {
		lines = append(lines, "- "+v.Spent(claybot.At(month), ofMonth))
	}
	standings, err := o.standings(ctx, agent, alone)
	if err != nil {
		return "", err
	}
	lines = append(lines, standings...)
	if alone || d.Shared() {
		sent, limit, err := o.Quota.Sent(ctx, d)
		if err != nil {
			return "", fmt.Errorf("read the size of the files of %s: %w", agent.ID, err)
		}
		if sent > 0 {
			lines = append(lines, "- "+v.FilesSent(sent, limit))
		}
	}
	if !alone {
		lines = append(lines, "", v.In(texts.UsageElsewhere))
	}
	return strings.Join(lines, "\n"), nil
}

// standings are the lines of the budgets that the readers may know: the budget of a person is not
// for a group, and that of all agents is for operators.
func (o *Answers) standings(ctx context.Context, agent claybot.Agent, alone bool) ([]string, error) {
	if o.Reports.Budgets == nil {
		return nil, nil
	}
	v := texts.Of(ctx)
	list, err := o.Reports.Budgets(ctx, agent.ID)
	if limit, faulty := errors.AsType[*llm.LimitError](err); faulty {
		return []string{"- " + limit.Text}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the budgets of %s: %w", agent.ID, err)
	}
	var lines []string
	for _, s := range list[agent.ID] {
		switch {
		case s.Per == budgets.PerAll && !(alone && o.People.IsOperator(agent.Descriptor.OwnerID())):
		case !alone && (s.Per == budgets.PerOwner || s.Per == budgets.PerToken):
		default:
			lines = append(lines, "- "+v.Budget(s.Name, s.Tokens, s.Spent, s.Limit, s.Resets))
		}
	}
	return lines, nil
}
