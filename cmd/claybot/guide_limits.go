package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/workspace/docker"
	"github.com/claybot/claybot/workspace/local"
)

// otherBudgets is how many budgets there are that setup does not set.
func otherBudgets(c configs.Config) (n int) {
	for _, b := range c.Agents.Budgets {
		if b.Per != "all" || b.Every != "day" || b.Match != "" || b.OnLimit == configs.LimitWarn || b.Fault != "" {
			n++
		}
	}
	return n
}

// setBudget stores what all agents together may take in a day. It deletes no budget of another kind.
func (s *guide) setBudget(config configs.Config, amount string) error {
	value, err := budgetFor(config, amount)
	if err != nil {
		return err
	}
	if others := otherBudgets(config); others > 0 {
		return fmt.Errorf("the configuration has %s of another kind, which setup keeps; change them all at once with: claybot config edit", count(others, "budget"))
	}
	if err := s.save(setting{key: "budgets", value: value}); err != nil {
		return err
	}
	s.say("✓ budget: %s\n", value)
	return nil
}

// budgetFor returns the budgets for an amount a day.
func budgetFor(c configs.Config, amount string) (string, error) {
	text := strings.ToLower(strings.NewReplacer(",", "", "_", "", " ", "").Replace(amount))
	number, money := strings.CutPrefix(text, "$")
	if !money {
		if number, money = strings.CutSuffix(text, "usd"); !money {
			number, money = strings.CutSuffix(text, "$")
		}
	}
	if !money {
		number = strings.TrimSuffix(number, "tokens")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n <= 0 {
			return "", fmt.Errorf("%.40q is neither a number of tokens, such as 2000000, nor money, such as $5", amount)
		}
		return fmt.Sprintf("[{per: all, every: day, tokens: %d}]", n), nil
	}
	usd, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.Trim(number, "0123456789.") != "" || usd < 0.01 || usd > 1e6 {
		return "", fmt.Errorf("%.40q is no amount from $0.01 to $1000000", amount)
	}
	if _, known := pricesOf(c.Model).For(c.Model.ID()); !known && !c.Model.Demo() {
		return "", fmt.Errorf("claybot knows no price of %s, so a budget in money would refuse it; give tokens, or set model.prices first", c.Model.ID())
	}
	return fmt.Sprintf("[{per: all, every: day, usd: %s}]", number), nil
}

// provides reports why a provider cannot open workspaces here.
func (s *guide) provides(name string) error {
	ctx, cancel := context.WithTimeout(s.ctx, platformTime)
	defer cancel()
	switch name {
	case configs.Off:
		return nil
	case configs.WorkspaceDocker:
		engine := docker.New(docker.Config{})
		defer func() { _ = engine.Close() }() // nothing was opened
		return engine.Check(ctx)
	case configs.WorkspaceLocal:
		_, err := local.New(local.Config{}).Confinement()
		return err
	}
	return errors.New("choose docker, local or off")
}

const workspaceKey = "workspaces.provider"

// setWorkspace stores where commands of agents run, if that works here.
func (s *guide) setWorkspace(name string) error {
	if err := s.provides(name); err != nil {
		return err
	}
	if err := s.save(setting{key: workspaceKey, value: name}); err != nil {
		return err
	}
	s.say("✓ workspace: %s\n", name)
	return nil
}

// workspaceSet returns the provider of workspaces that is set; empty for none.
func workspaceSet(config configs.Config) string {
	if v := config.Value(workspaceKey); len(v) == 1 && v[0].Origin != configs.OriginDefault {
		return v[0].Plain()
	}
	return ""
}
