package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/workspace/docker"
	"github.com/claybot/claybot/workspace/local"
)

// budget sets up what all agents together may take in a day.
func (s *setup) budget() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	if given := s.flags.Budget; given != "" {
		value, err := budgetFor(config, given)
		if err != nil {
			return fmt.Errorf("--budget: %w", err)
		}
		if others := otherBudgets(config); others > 0 {
			return fmt.Errorf("--budget: the configuration has %s of another kind, which setup keeps; change them all at once with: claybot config edit", count(others, "budget"))
		}
		return s.saveBudget(value)
	}
	if config.Agents.Budgets != nil {
		s.say("✓ budget: %s in the configuration.\n", count(len(config.Agents.Budgets), "budget"))
		return nil
	}
	if s.term == nil {
		return s.needs("the budget", "--budget AMOUNT")
	}
	s.say("\nBudget. By default, each person may take %s tokens a day. You can also limit what all agents take together in a day.\n", llm.Grouped(ownerTokens))
	for {
		answer, err := s.ask("Tokens, such as 2000000, or money, such as $5 (Enter skips): ")
		if err != nil {
			return err
		}
		if answer == "" {
			return errSkipped
		}
		value, err := budgetFor(config, answer)
		if err == nil {
			return s.saveBudget(value)
		}
		s.say("✗ %v\n", err)
	}
}

// otherBudgets is how many budgets there are that setup does not set.
func otherBudgets(c configs.Config) (n int) {
	for _, b := range c.Agents.Budgets {
		if b.Per != "all" || b.Every != "day" || b.Match != "" || b.OnLimit == configs.LimitWarn || b.Fault != "" {
			n++
		}
	}
	return n
}

func (s *setup) saveBudget(value string) error {
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

// workspace sets up where commands of agents run.
func (s *setup) workspace() error {
	const key = "workspaces.provider"
	config, _, err := s.load()
	if err != nil {
		return err
	}
	if given := s.flags.Workspace; given != "" {
		if err := s.provides(given); err != nil {
			return fmt.Errorf("--workspace %s: %w", given, err)
		}
		if err := s.save(setting{key: key, value: given}); err != nil {
			return err
		}
		s.say("✓ workspace: %s\n", given)
		return nil
	}
	if v := config.Value(key); len(v) == 1 && v[0].Origin != configs.OriginDefault {
		if err := s.provides(v[0].Plain()); err != nil {
			s.say("! workspace: %s, but %v\n", v[0].Plain(), err)
			return nil
		}
		s.say("✓ workspace: %s\n", v[0].Plain())
		return nil
	}
	found := s.provides(configs.WorkspaceDocker)
	if s.term == nil {
		return s.needs("the workspace", "--workspace docker, local or off")
	}
	s.say("\nWorkspaces. Commands of agents run in containers of Docker, in confined folders of this machine, or not at all.\n")
	usual := configs.WorkspaceDocker
	if found != nil {
		usual = configs.Off
		s.say("! Docker cannot be used: %v\n", found)
	}
	for {
		answer, err := s.ask(fmt.Sprintf("docker, local or off [%s]: ", usual))
		if err != nil {
			return err
		}
		if answer == "" {
			answer = usual
		}
		if err = s.provides(answer); err == nil {
			if err = s.save(setting{key: key, value: answer}); err == nil {
				s.say("✓ workspace: %s\n", answer)
			}
			return err
		}
		s.say("✗ %v\n", err)
	}
}

// provides reports why a provider cannot open workspaces here.
func (s *setup) provides(name string) error {
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
