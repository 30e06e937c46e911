package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/nodes"
)

type setupCmd struct {
	Step          string `arg:"" optional:"" values:"model,telegram,slack,discord,budget,workspace" help:"Do this step alone: model, telegram, slack, discord, budget or workspace."`
	ModelKey      string `placeholder:"REF" help:"API key of the model: env:NAME, file:PATH, or - for standard input."`
	ModelURL      string `name:"model-url" placeholder:"URL" help:"Address of the model's API, such as http://127.0.0.1:11434/v1 for Ollama. Default: that of OpenAI, or of Anthropic for its keys."`
	TelegramToken string `placeholder:"REF" help:"Token of the Telegram bot: env:NAME, file:PATH or -."`
	SlackBotToken string `placeholder:"REF" help:"Bot token of the Slack app (xoxb-…): env:NAME, file:PATH or -."`
	SlackAppToken string `placeholder:"REF" help:"App-level token of the Slack app (xapp-…): env:NAME, file:PATH or -."`
	DiscordToken  string `placeholder:"REF" help:"Token of the Discord bot: env:NAME, file:PATH or -."`
	Budget        string `placeholder:"AMOUNT" help:"What all agents together may take in a day: tokens, such as 2000000, or money, such as '$$5'."`
	Workspace     string `placeholder:"PROVIDER" values:"docker,local,off" help:"Where commands of agents run: docker, local or off."`
	NoPair        bool   `help:"Do not wait until you have paired with a bot."`
}

// A setupStep sets a part of claybot up. It shows and skips what is set and works.
type setupStep struct {
	name string
	what string // what it is about, for a person
	do   func(*setup) error
	// given reports whether flags answer its questions.
	given func(setupCmd) bool
}

// setupSteps are the steps in their order.
var setupSteps = []setupStep{
	{"model", "the model that answers", (*setup).model, func(c setupCmd) bool { return c.ModelKey+c.ModelURL != "" }},
	{"telegram", "a Telegram bot", (*setup).telegram, func(c setupCmd) bool { return c.TelegramToken != "" }},
	{"slack", "a Slack app", (*setup).slack, func(c setupCmd) bool { return c.SlackBotToken+c.SlackAppToken != "" }},
	{"discord", "a Discord bot", (*setup).discord, func(c setupCmd) bool { return c.DiscordToken != "" }},
	{"budget", "what agents may take in a day", (*setup).budget, func(c setupCmd) bool { return c.Budget != "" }},
	{"workspace", "where commands of agents run", (*setup).workspace, func(c setupCmd) bool { return c.Workspace != "" }},
}

// errSkipped ends a step that was not done.
var errSkipped = errors.New("skipped")

// A setup is one run of claybot setup: the face of the guide on a terminal, or by flags.
type setup struct {
	*guide
	flags setupCmd
	term  *asker // nil without a terminal
	alone bool   // it does one step
}

// Run goes through the steps, and ends once a reply was seen.
func (c setupCmd) Run(e *env) error {
	steps := setupSteps
	if c.Step != "" {
		steps = slices.DeleteFunc(slices.Clone(steps), func(s setupStep) bool { return s.name != c.Step })
		if len(steps) == 0 {
			return usageError{fmt.Errorf("no step %.40q; there are: model, telegram, slack, discord, budget, workspace", c.Step)}
		}
	}
	if err := cmp.Or(c.others(), c.check()); err != nil {
		return err
	}
	s := &setup{guide: &guide{env: e, by: userName()}, flags: c, term: e.asker(), alone: c.Step != ""}
	s.guide.say, s.again = s.say, func(step string) string { return "; then: claybot setup " + step }
	config, _, err := e.load()
	if err != nil {
		return err
	}
	flagged := e.Model != "" || slices.ContainsFunc(setupSteps, func(x setupStep) bool { return x.given(c) })
	if s.term == nil && !flagged && !s.alone && config.Model.Demo() {
		return usageError{errors.New("claybot setup asks questions on a terminal, and standard input is none; answer them with flags, " +
			"such as --model-key env:OPENAI_API_KEY --telegram-token file:token.txt; claybot setup --help lists them")}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s.ctx = ctx
	if s.term != nil {
		defer s.term.quiet()()
	}
	defer func() {
		if err := s.leave(); err != nil {
			fmt.Fprintln(s.err, "claybot:", err)
		}
	}()
	err = s.steps(steps)
	if err == nil && (!s.alone || c.Step == "model") {
		err = s.greet()
	}
	return s.end(err)
}

// others refuses flags of other steps than the one that is done alone.
func (c setupCmd) others() error {
	for _, f := range []struct{ step, name, value string }{
		{"model", "model-key", c.ModelKey},
		{"model", "model-url", c.ModelURL},
		{"telegram", "telegram-token", c.TelegramToken},
		{"slack", "slack-bot-token", c.SlackBotToken},
		{"slack", "slack-app-token", c.SlackAppToken},
		{"discord", "discord-token", c.DiscordToken},
		{"budget", "budget", c.Budget},
		{"workspace", "workspace", c.Workspace},
	} {
		if c.Step != "" && f.value != "" && f.step != c.Step {
			return usageError{fmt.Errorf("--%s belongs to the step %s, and this does %s alone; give it to: claybot setup %s", f.name, f.step, c.Step, f.step)}
		}
	}
	return nil
}

// check refuses flags that cannot hold together.
func (c setupCmd) check() error {
	inputs := 0
	for _, f := range []struct{ name, ref string }{
		{"model-key", c.ModelKey}, {"telegram-token", c.TelegramToken}, {"slack-bot-token", c.SlackBotToken}, {"slack-app-token", c.SlackAppToken}, {"discord-token", c.DiscordToken},
	} {
		if f.ref == "-" {
			inputs++
		}
		if err := secretReference(f.name, f.ref); f.ref != "" && err != nil {
			return err
		}
	}
	if inputs > 1 {
		return usageError{errors.New("only one secret can come from standard input; give env:NAME or file:PATH for the others")}
	}
	return nil
}

// secretReference refuses the value of a flag that is no reference to a secret.
func secretReference(flag, ref string) error {
	switch {
	case ref == "-":
	case ref == "env:":
		return usageError{fmt.Errorf("--%s: env: names no variable; give env:NAME, such as env:TOKEN", flag)}
	case ref == "file:":
		return usageError{fmt.Errorf("--%s: file: names no file; give file:PATH, such as file:token.txt", flag)}
	case !strings.HasPrefix(ref, "env:") && !strings.HasPrefix(ref, "file:"):
		return usageError{fmt.Errorf("--%s: a secret must not stand on the command line, where other users see it; give env:NAME, file:PATH, or - for standard input", flag)}
	}
	return nil
}

// steps does the steps in their order. One that fails does not keep others from being done.
func (s *setup) steps(steps []setupStep) error {
	var failed []error
	for _, step := range steps {
		err := s.ctx.Err()
		if err == nil {
			err = step.do(s)
		}
		switch {
		case err == nil || errors.Is(err, errSkipped):
		case s.ctx.Err() != nil || errors.Is(err, errInterrupted) || errors.Is(err, errInputEnded):
			if s.ctx.Err() != nil {
				err = errInterrupted
			}
			return err
		case s.alone:
			return err
		default:
			failed = append(failed, err)
			s.say("✗ %s: %v\n", step.name, err)
		}
	}
	if len(failed) > 0 {
		return errSilent
	}
	return nil
}

// end says how to go on after an error.
func (s *setup) end(err error) error {
	if err == nil {
		return nil
	}
	if text := s.here(err.Error()); text != err.Error() {
		err = hereError{err, text}
	}
	again := "claybot setup"
	if s.alone {
		again += " " + s.flags.Step
	}
	again = s.here(again)
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(s.err, "claybot: interrupted; what is done stays. Go on with: %s\n", again)
		return interruptedError{}
	case errors.Is(err, errInputEnded):
		return fmt.Errorf("the input ended; what is done stays. Go on with: %s", again)
	case errors.Is(err, errSilent):
		fmt.Fprintf(s.err, "claybot: setup is not complete; what is done stays. Go on with: %s\n", again)
	}
	return err
}

// commands are those that setup names as next steps.
var commands = lazyregexp.New(`\bclaybot (setup|serve|stop|status|doctor|config|pair|service|slack)\b`)

// here returns a text in which commands have the global flags of this one: they are about the same
// files.
func (s *setup) here(text string) string {
	flags := ""
	for _, f := range []struct{ name, value string }{{"--config", s.Config}, {"--data-dir", s.DataDir}, {"--http", s.HTTP}} {
		if f.value != "" {
			flags += " " + f.name + " " + nodes.ShellWord(f.value)
		}
	}
	return commands.ReplaceAllStringFunc(text, func(command string) string {
		return "claybot" + flags + strings.TrimPrefix(command, "claybot")
	})
}

// A hereError is an error whose commands have the flags of this one, see here.
type hereError struct {
	error
	text string
}

func (e hereError) Error() string { return e.text }

func (e hereError) Unwrap() error { return e.error }

// say prints to the user.
func (s *setup) say(format string, args ...any) {
	_ = s.text(s.here(fmt.Sprintf(format, args...))) // a closed terminal ends the input as well
}

// ask asks on the terminal. Without one, the question is skipped.
func (s *setup) ask(prompt string) (string, error) {
	if s.term == nil {
		return "", errSkipped
	}
	return s.term.ask(s.ctx, prompt, false)
}

// askSecret asks for a secret, which is not shown. An empty answer skips the step.
func (s *setup) askSecret(prompt string) (string, error) {
	if s.term == nil {
		return "", errSkipped
	}
	answer, err := s.term.ask(s.ctx, prompt, true)
	if err == nil && answer == "" {
		return "", errSkipped
	}
	return answer, err
}

// yes asks a question to which Enter is no.
func (s *setup) yes(question string) (bool, error) {
	s.say("%s\n", question) // the names of people in it may hold what a terminal obeys
	answer, err := s.ask("[y/N] ")
	return strings.HasPrefix(strings.ToLower(answer), "y"), err
}

// greet sends hello through the terminal chat of the daemon, and shows the reply.
func (s *setup) greet() error {
	cl, err := s.connected()
	if err == nil {
		err = s.same("model")
	}
	if err != nil {
		return err
	}
	s.say("\nSending the first message.\n> hello\n")
	t := &talk{client: cl, out: s.out, errs: s.err, inside: s.stop != nil}
	if err := t.once(s.ctx, "hello"); err != nil {
		if s.ctx.Err() != nil {
			return errInterrupted
		}
		s.say("✗ No reply to the first message. Next: claybot setup model\n")
		return err
	}
	if t.broke {
		s.say("✗ No reply to the first message: the budget does not hold a call. Next: claybot setup budget\n")
		return errSilent
	}
	config, _, err := s.load()
	if err != nil {
		return err
	}
	if config.Model.Demo() {
		s.say("\n! That was the built-in demo model. Set a model with: claybot setup model\n")
	}
	switch {
	case s.stop != nil:
		s.say("\nclaybot is set up. Start it with: claybot serve\nOr run it as a service from now on: claybot service install\n")
	default:
		s.say("\nclaybot is set up and runs.\n")
	}
	return nil
}

// secretOf returns the secret that a flag refers to, and the reference that the file can have;
// without one, the secret itself is stored.
func (s *setup) secretOf(flag, ref string) (secret, reference string, err error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch {
	case ref == "-":
		b, err := io.ReadAll(io.LimitReader(s.in, maxSecretInput))
		if err != nil {
			return "", "", err
		}
		secret = string(b)
	case kind == "env":
		reference = ref
		secret, _ = s.lookup(name)
	default:
		b, err := os.ReadFile(name)
		if err == nil {
			name, err = filepath.Abs(name) // in the file it would be beside that
		}
		if err != nil {
			return "", "", fmt.Errorf("--%s: %w; give env:NAME, file:PATH, or - for the standard input", flag, err)
		}
		secret, reference = string(b), "file:"+name
	}
	switch secret = strings.TrimSpace(secret); {
	case secret == "":
		return "", "", fmt.Errorf("--%s: %s is empty or not set; put the secret there and try again", flag, ref)
	case strings.ContainsAny(secret, "\r\n\x00"):
		return "", "", fmt.Errorf("--%s: %s has a line break within; copy the secret again as one line", flag, ref)
	}
	return secret, reference, nil
}
