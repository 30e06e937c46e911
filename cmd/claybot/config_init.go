package main

import (
	"context"
	"fmt"

	"github.com/claybot/claybot/configs"
)

type configSchemaCmd struct{}

// Run prints the JSON Schema. It reads no configuration.
func (configSchemaCmd) Run(e *env) error {
	text, err := configs.JSONSchema()
	if err != nil {
		return err
	}
	_, err = e.out.Write(text)
	return err
}

// starterFile is what claybot config init writes.
const starterFile = `# The configuration of claybot. Every key has a default: keep what you need.
# All keys: docs/configuration.md, or: claybot config show
# Check it: claybot config check. A running daemon reads it again by itself.

# The model that answers. Its key comes from OPENAI_API_KEY or ANTHROPIC_API_KEY.
# Without a model, a built-in demo answers.
#model: gpt-5

# Who may write: pairing (unknown users get a code that you approve), allowlist, open.
access:
  mode: pairing

# Secrets stand in variables or files: env:NAME or file:path.
#telegram:
#  token: env:TELEGRAM_BOT_TOKEN

# What each person may spend in a day.
#budgets:
#  - {per: owner, every: day, usd: 2}

# Where agents run commands: docker, local (on this machine), or off.
#workspaces: docker

# How all agents behave.
agents:
  default:
    max_steps: 64
`

type configInitCmd struct{}

// Run creates the file that would be loaded, unless there is one, or a running daemon has
// settings of one that is gone.
func (configInitCmd) Run(e *env) error {
	f, err := e.configFile()
	if err == nil && f.text == nil {
		err = f.lock(context.Background())
	}
	switch {
	case err != nil:
		return err
	case f.text != nil:
		return configError{fmt.Errorf("%s is there already; change it with: claybot config set", f.path)}
	}
	if _, err := f.check(e, nil, []byte(starterFile)); err != nil {
		return err
	}
	if err := f.kept(e); err != nil {
		return err
	}
	if err := f.replace([]byte(starterFile)); err != nil {
		return err
	}
	return e.text(fmt.Sprintf("%s is created. Check your changes with: claybot config check\n", f.path))
}
