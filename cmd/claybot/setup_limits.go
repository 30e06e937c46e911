package main

import (
	"fmt"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
)

// budget sets up what all agents together may take in a day.
func (s *setup) budget() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	if given := s.flags.Budget; given != "" {
		if err := s.setBudget(config, given); err != nil {
			return fmt.Errorf("--budget: %w", err)
		}
		return nil
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
		if _, err = budgetFor(config, answer); err == nil {
			return s.setBudget(config, answer)
		}
		s.say("✗ %v\n", err)
	}
}

// workspace sets up where commands of agents run.
func (s *setup) workspace() error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	if given := s.flags.Workspace; given != "" {
		if err := s.setWorkspace(given); err != nil {
			return fmt.Errorf("--workspace %s: %w", given, err)
		}
		return nil
	}
	if now := workspaceSet(config); now != "" {
		if err := s.provides(now); err != nil {
			s.say("! workspace: %s, but %v\n", now, err)
			return nil
		}
		s.say("✓ workspace: %s\n", now)
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
			return s.setWorkspace(answer)
		}
		s.say("✗ %v\n", err)
	}
}
