package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"rsc.io/qr"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A setupDesk implements web.Setup: it is the face of the guide on the page. Like claybot setup it calls
// the daemon by its socket, so it has the rights of the owner: only web.Here lets a request in.
type setupDesk struct {
	*daemon
	steps map[string]*deskStep
}

// A deskStep is what the page knows of a step. It is lost with the process: what is done is in the
// configuration.
type deskStep struct {
	mu      sync.Mutex
	found   *deskFound // nil until it was looked
	pairing *pairing   // that goes on; nil for none
	stuck   string     // why it does not
}

// A deskFound is what was found of the settings of a step.
type deskFound struct {
	version string // of the settings
	step    web.SetupStep
	bot     botFound
}

func newSetupDesk(d *daemon) *setupDesk {
	desk := &setupDesk{daemon: d, steps: make(map[string]*deskStep)}
	for _, name := range web.SetupSteps {
		desk.steps[name] = new(deskStep)
	}
	return desk
}

// A heard is what a guide has said.
type heard struct{ notes []web.SetupNote }

func (h *heard) say(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		text, good := strings.CutPrefix(line, "✓ ")
		text, doubt := strings.CutPrefix(text, "! ")
		if !good && !doubt {
			continue
		}
		if of, rest, named := strings.Cut(text, ": "); named && slices.Contains(web.SetupSteps, of) {
			text = rest
		}
		h.notes = append(h.notes, web.SetupNote{Good: good, Text: strings.TrimSpace(text)})
	}
}

// guide returns a guide for a request.
func (d *setupDesk) guide(ctx context.Context, by string) (*guide, *heard, error) {
	switch {
	case !web.Here(ctx):
		return nil, nil, web.ErrSetupElsewhere
	case d.env == nil:
		return nil, nil, errNoConfig
	}
	e, said := *d.env, new(heard)
	e.in, e.out, e.err = bytes.NewReader(nil), io.Discard, io.Discard
	return &guide{env: &e, ctx: ctx, by: by, say: said.say, again: func(string) string { return "" }, within: d.running}, said, nil
}

// running is the configuration in force.
func (d *setupDesk) running() configs.Config { return *d.config.Load() }

// Begun implements web.Setup.
func (d *setupDesk) Begun(context.Context) web.SetupState {
	state := setupState(*d.config.Load())
	if d.env == nil {
		return state
	}
	f, err := d.env.editable()
	if err != nil {
		return state
	}
	all, _ := f.history() // without one, the model may have been set elsewhere
	for _, c := range all {
		if strings.HasPrefix(c.Key, "model.") {
			state.Since = c.At
		}
	}
	return state
}

func setupState(c configs.Config) web.SetupState {
	x := &c.Connectors
	return web.SetupState{Demo: c.Model.Demo(), Set: map[string]bool{
		web.SetupModel: !c.Model.Demo(), web.SetupTelegram: x.Telegram.Wanted(), web.SetupSlack: x.Slack.Wanted(), web.SetupDiscord: x.Discord.Wanted(),
		web.SetupBudget: c.Agents.Budgets != nil, web.SetupWorkspace: workspaceSet(c) != "",
	}}
}

// versionOf is that of the settings of a step.
func versionOf(c configs.Config, name string) string {
	group := cmp.Or(map[string]string{web.SetupBudget: "budgets", web.SetupWorkspace: "workspaces"}[name], name)
	var b strings.Builder
	for _, v := range c.Value(group) {
		fmt.Fprintf(&b, "%s %s %s\n", v.Key, v.Value, v.Plain())
	}
	return configs.VersionOf([]byte(b.String()))
}

// Step implements web.Setup.
func (d *setupDesk) Step(ctx context.Context, name string) (web.SetupStep, error) {
	s := d.steps[name]
	if s == nil {
		return web.SetupStep{}, storage.ErrNotFound
	}
	g, said, err := d.guide(ctx, web.Operator)
	if err != nil {
		return web.SetupStep{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	config, _, err := g.load()
	if err != nil {
		return web.SetupStep{}, configProblem("", err)
	}
	if version := versionOf(config, name); s.found == nil || s.found.version != version {
		found := &deskFound{version: version, step: web.SetupStep{Name: name, Version: version, Set: setupState(config).Set[name]}}
		d.look(g, config, found)
		if ctx.Err() != nil {
			return web.SetupStep{}, ctx.Err()
		}
		d.shadowed(g, config, name)
		found.step.Notes = said.notes
		s.found = found
	}
	out := s.found.step
	if bots[name] && out.Set && out.Wrong == "" && (name != web.SetupSlack || len(out.Has) == 2) {
		out.Pairing = d.pair(g, config, s)
	}
	return out, nil
}

// stepKeys are the keys that a step stores.
var stepKeys = map[string][]string{
	web.SetupModel: {"model.provider", "model.base_url", "model.name", "model.key", "model.keys"}, web.SetupTelegram: {"telegram.token"},
	web.SetupSlack: {"slack.bot_token", "slack.app_token"}, web.SetupDiscord: {"discord.token"}, web.SetupBudget: {"budgets"}, web.SetupWorkspace: {workspaceKey},
}

// shadowed says which variables and flags set what a step would store, and win over it.
func (d *setupDesk) shadowed(g *guide, config configs.Config, name string) {
	for _, key := range stepKeys[name] {
		for _, v := range config.Value(key) {
			if v.Above {
				g.say("! %s comes from %s, which wins over what you store here.\n", key, v.Origin)
			}
		}
	}
}

// bots are the steps that pair their owner.
var bots = map[string]bool{web.SetupTelegram: true, web.SetupSlack: true, web.SetupDiscord: true}

// look finds out about the settings of a step.
func (d *setupDesk) look(g *guide, config configs.Config, found *deskFound) {
	var err error
	switch step := &found.step; step.Name {
	case web.SetupModel:
		step.Providers = setupProviders()
		if step.Ollama = g.ollama(); !step.Set {
			return
		}
		step.Value = config.Model.ID()
		if err = g.modelWorks(config.Model); err == nil {
			step.Options = offered(g, config.Model)
		}
	case web.SetupTelegram, web.SetupDiscord:
		if step.Set {
			found.bot, err = g.botWorks(config, botSteps[step.Name])
			step.Link = found.bot.inviteURL()
		}
	case web.SetupSlack:
		err = d.lookSlack(g, config, step)
	case web.SetupBudget:
		if step.Set {
			step.Value = count(len(config.Agents.Budgets), "budget")
			if v := config.Value("budgets"); len(v) == 1 && v[0].Value != "" {
				step.Value = v[0].Value
			}
		}
	case web.SetupWorkspace:
		if step.Value = workspaceSet(config); step.Set {
			err = g.provides(step.Value)
		} else if err := g.provides(configs.WorkspaceDocker); err != nil {
			g.say("! Docker cannot be used: %v\n", err)
		}
	}
	if err != nil {
		found.step.Wrong = cause(err)
	}
}

// offered are the models that the provider of a model has; none where it has no list.
func offered(g *guide, m configs.Model) []string {
	ctx, cancel := context.WithTimeout(g.ctx, platformTime)
	defer cancel()
	names, err := listModels(ctx, m)
	if err != nil {
		return nil
	}
	return names
}

func (d *setupDesk) lookSlack(g *guide, config configs.Config, step *web.SetupStep) (err error) {
	c := config.Connectors.Slack
	if c.Rotates() || c.Hooked() {
		g.say("✓ It is set up by hand, with receive: http or token rotation; check it with: claybot doctor\n")
		return nil
	}
	for key, token := range map[string]configs.Secret{"bot_token": c.BotToken, "app_token": c.AppToken} {
		if token.Named() {
			step.Has = append(step.Has, key)
		}
	}
	slices.Sort(step.Has)
	if len(step.Has) > 0 {
		err = g.slackWorks(config)
	}
	if step.Link, _ = slackLink(config); step.Link == "" { // the doctor says what is wrong with the settings
		step.Link = "https://api.slack.com/apps?new_app=1"
	}
	return err
}

// pair goes on with the pairing of a step. Once a person has used its link or code, they are the
// operator.
func (d *setupDesk) pair(g *guide, config configs.Config, s *deskStep) *web.SetupPairing {
	name := s.found.step.Name
	known, err := g.known(config, name)
	if err != nil {
		return &web.SetupPairing{Wrong: cause(err)}
	}
	if o := operatorOf(config, known); o != "" {
		s.pairing, s.stuck = nil, ""
		return &web.SetupPairing{Operators: []string{o}}
	}
	switch p := s.pairing; {
	case config.Access.Mode == configs.AccessOpen:
		return &web.SetupPairing{Wrong: "Access is open: anyone who finds the bot can use it, and there is nothing to pair. Restrict it: claybot config set access.mode pairing"}
	case p == nil:
		return &web.SetupPairing{Wrong: s.stuck, People: known[:min(len(known), mostAsked)]}
	default:
		who, err := g.advance(p)
		if err == nil && who == nil && p.up && p.invitation == nil { // no need to wait for the next look
			who, err = g.advance(p)
		}
		if err == nil && who != nil {
			err = g.operate(*who, "")
		}
		if err != nil {
			s.pairing, s.stuck = nil, cause(err)
			return &web.SetupPairing{Wrong: s.stuck}
		}
		if who != nil {
			s.pairing = nil
			return &web.SetupPairing{Operators: []string{who.Connector + "/" + who.Subject}}
		}
		return shownPairing(p)
	}
}

func shownPairing(p *pairing) *web.SetupPairing {
	out := &web.SetupPairing{Invitation: p.invitation}
	if p.invitation != nil && p.invitation.URL != "" {
		out.Picture = pathOf(p.invitation.URL)
	}
	return out
}

// pathOf is a QR code as a path, with its margin.
func pathOf(text string) web.SetupPicture {
	const margin = 4
	code, err := qr.Encode(text, qr.L)
	if err != nil { // too long: the link stands beside it
		return web.SetupPicture{}
	}
	var b strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&b, "M%d %dh1v1h-1z", x+margin, y+margin)
			}
		}
	}
	return web.SetupPicture{Size: code.Size + 2*margin, Path: b.String()}
}

// Models implements web.Setup.
func (d *setupDesk) Models(ctx context.Context, in web.SetupAnswer) (out web.SetupModels, err error) {
	g, _, err := d.guide(ctx, in.By)
	if err != nil {
		return out, err
	}
	c, err := g.choice(in)
	if err != nil {
		return out, err
	}
	m, names, err := g.listed(c)
	if err != nil {
		return out, setupProblem(err, "secret")
	}
	return web.SetupModels{Names: names, Usual: usualOf(m, names)}, nil
}

// Answer implements web.Setup.
func (d *setupDesk) Answer(ctx context.Context, in web.SetupAnswer) ([]web.SetupNote, error) {
	s := d.steps[in.Step]
	if s == nil {
		return nil, storage.ErrNotFound
	}
	g, said, err := d.guide(ctx, in.By)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	config, _, err := g.load()
	if err != nil {
		return nil, configProblem("", err)
	}
	switch {
	case in.Again:
		s.found, s.stuck = nil, ""
		return nil, nil
	case in.Version != versionOf(config, in.Step):
		return nil, web.ErrSetupStale
	}
	err = d.answer(g, config, s, in)
	if now, _, unread := g.load(); unread == nil && in.Version != versionOf(now, in.Step) {
		d.log.Info("setup step changed", "step", in.Step, "by", in.By)
	}
	return said.notes, err
}

func (d *setupDesk) answer(g *guide, config configs.Config, s *deskStep, in web.SetupAnswer) error {
	switch pairs := in.Operator != "" || in.Invite; {
	case pairs && !(bots[in.Step] && setupState(config).Set[in.Step]):
		return setupProblem(errors.New("the bot is not set up yet; paste its token first"), "")
	case in.Operator != "":
		return d.recognize(g, config, s, in)
	case in.Invite:
		return d.begin(g, config, s, in.Step)
	}
	switch in.Step {
	case web.SetupModel:
		return g.answerModel(config, in)
	case web.SetupTelegram, web.SetupDiscord:
		if err := g.answerBot(config, in); err != nil {
			return err
		}
	case web.SetupSlack:
		if whole, err := g.answerSlack(config, in); err != nil || !whole {
			return err
		}
	case web.SetupBudget:
		return setupProblem(g.setBudget(config, in.Value), "value")
	case web.SetupWorkspace:
		return setupProblem(g.setWorkspace(in.Value), "value")
	}
	return d.begin(g, config, s, in.Step)
}

// begin begins the pairing of a bot, which the next looks go on with.
func (d *setupDesk) begin(g *guide, config configs.Config, s *deskStep, name string) error {
	known, err := g.known(config, name)
	if err != nil {
		return setupProblem(err, "")
	}
	s.pairing, s.stuck = &pairing{name: name, known: known}, ""
	return nil
}

// recognize makes a person with access the operator, who says to be the owner.
func (d *setupDesk) recognize(g *guide, config configs.Config, s *deskStep, in web.SetupAnswer) error {
	known, err := g.known(config, in.Step)
	if err != nil {
		return setupProblem(err, "")
	}
	for _, who := range known {
		if who.Subject == in.Operator {
			s.pairing = nil
			return setupProblem(g.operate(who, ""), "")
		}
	}
	return setupProblem(errors.New("this person has no access any more"), "")
}

// setupProblem returns what is wrong with an answer in words for the page, at a field of its form.
func setupProblem(err error, field string) error {
	var problem *web.Problem
	var asks *consentError
	switch {
	case err == nil || errors.As(err, &problem):
		return err
	case errors.As(err, &asks):
		return &web.Problem{
			Status: http.StatusConflict, Code: "consent", Message: asks.key + " is set where claybot runs, and claybot would send that key to " + asks.host + ".",
			Fix: "Paste the key that this server needs, or tick that the key may go there.",
		}
	}
	text := cause(err)
	if strings.HasPrefix(text, "that ") || strings.HasPrefix(text, "the ") || strings.HasPrefix(text, "nothing ") || strings.HasPrefix(text, "this ") {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	p := &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: text}
	if field != "" {
		p.Fields = map[string]string{field: text}
	}
	return p
}

// setupProviders returns the providers of models that the page offers besides those that it has always had.
func setupProviders() (all []web.SetupProvider) {
	for _, p := range llm.Presets() {
		if !slices.Contains([]string{configs.ProviderOpenAI, configs.ProviderAnthropic, providerOllama}, p.Name) {
			all = append(all, web.SetupProvider{Name: p.Name, Title: p.Title, Example: p.Example})
		}
	}
	return all
}
