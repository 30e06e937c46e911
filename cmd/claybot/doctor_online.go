package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/tools/mcp"
)

// A serviceQuestion is what the doctor asks a service.
type serviceQuestion struct {
	what string
	ask  func(context.Context, *doctor)
}

// services asks the platforms what else is silent, and with --online the platforms, the models, the MCP
// servers and the relays of events, with the credentials of the configuration. It asks all at once, and
// asking bounds all of it. It takes nothing from them and changes nothing there.
func (d *doctor) services(ctx context.Context) bool {
	all := d.platformQuestions()
	if d.online {
		for _, m := range d.routesOfModels() {
			all = append(all, serviceQuestion{"model " + m.ID(), func(ctx context.Context, d *doctor) { d.askModel(ctx, m) }})
		}
		if len(d.config.Tools.MCP) > 0 {
			all = append(all, serviceQuestion{"MCP servers", func(ctx context.Context, d *doctor) { d.askServers(ctx) }})
		}
		for what, address := range receiversOf(d.config) {
			all = append(all, serviceQuestion{what, func(ctx context.Context, d *doctor) { d.askReceiver(ctx, address) }})
		}
	}
	slices.SortStableFunc(all, func(a, b serviceQuestion) int { return strings.Compare(a.what, b.what) })
	ctx, cancel := context.WithTimeout(ctx, d.asking)
	defer cancel()
	answers := make([]*doctor, len(all))
	var asking sync.WaitGroup
	for n, q := range all {
		own := *d
		own.what, own.all = q.what, nil
		answers[n] = &own
		asking.Go(func() { q.ask(ctx, &own) })
	}
	asking.Wait()
	for _, a := range answers {
		d.all = append(d.all, a.all...)
	}
	return true
}

// platformQuestions are those about connectors that are on and have a credential.
func (d *doctor) platformQuestions() (all []serviceQuestion) {
	add := func(i configs.Instance, ask func(context.Context, *doctor)) {
		all = append(all, serviceQuestion{i.Name, ask})
	}
	for _, i := range d.config.Connectors.Instances() {
		if i.Settings.Off() != "" || !slices.ContainsFunc(i.Settings.Credentials(), func(c configs.Credential) bool { return c.Value.Value() != "" }) {
			continue // another check says so
		}
		switch s := i.Settings.(type) {
		case *configs.Telegram:
			add(i, func(ctx context.Context, d *doctor) { d.privacy(ctx, i.Name, s) })
			add(i, func(ctx context.Context, d *doctor) { d.reactions(ctx, i.Name, s) })
			if d.online {
				add(i, func(ctx context.Context, d *doctor) { d.askTelegram(ctx, i, s) })
			}
		case *configs.Slack:
			if d.online {
				add(i, func(ctx context.Context, d *doctor) { d.askSlack(ctx, i, s) })
			}
		case *configs.Discord:
			add(i, func(ctx context.Context, d *doctor) { d.discord(ctx, i, s) })
		}
	}
	return all
}

// receiversOf are the addresses of relays of events, and of the collector of traces.
func receiversOf(c configs.Config) map[string]string {
	all := make(map[string]string)
	for _, x := range c.Telemetry.Relay {
		if x.URL != "" {
			all["relay "+x.Name] = x.URL
		}
	}
	if at := c.Telemetry.OTLP.Endpoint; at != "" {
		all["otlp"] = at
	}
	return all
}

// askReceiver asks a receiver whether its server is there.
func (d *doctor) askReceiver(ctx context.Context, address string) {
	answer, err := receiverAnswer(ctx, address)
	if err != nil {
		d.warn("relay-failing", err.Error(), "")
		return
	}
	d.ok(answer)
}

// receiverAnswer asks a receiver for its headers alone, without a credential and without an event. Any answer shows
// that its server is there.
func receiverAnswer(ctx context.Context, address string) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return "", errors.New("its address is not valid")
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	r, err := client.Do(q)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address: its path may hold a secret
		}
		return "", fmt.Errorf("%s does not answer: %w", q.URL.Host, err)
	}
	_ = r.Body.Close() // it has none
	return q.URL.Host + " answers; nothing was sent there", nil
}

// askTelegram asks Telegram whether it takes the token, and where it sends updates.
func (d *doctor) askTelegram(ctx context.Context, i configs.Instance, s *configs.Telegram) {
	cfg := telegram.Config{Name: i.Name, Token: s.Token.Value(), BaseURL: s.APIURL, TokenName: i.Names()[0], Log: slog.New(slog.DiscardHandler)}
	if s.Hooked() {
		cfg.Hook = hookURL(d.config, "", i.Name)
	}
	c := telegram.New(cfg)
	name, err := c.Examine(ctx)
	if err != nil {
		d.refused(err)
		return
	}
	w, err := c.Webhook(ctx)
	switch {
	case err != nil:
		d.refused(err)
	case s.Hooked() && !w.Ours:
		d.warn("telegram-webhook-elsewhere", fmt.Sprintf("Telegram takes the token of @%s and sends its updates to %s, not to %s", name, cmp.Or(w.Host, "no address"), cfg.Hook),
			"start claybot, which sets its own address; if it runs, another program uses the bot: stop that, or create a bot of your own with @BotFather")
	case s.Hooked() && w.Failure != "" && w.Waiting > 0:
		d.problem("telegram-webhook-failing", fmt.Sprintf("%s wait, because Telegram cannot deliver them to %s: %s", count(w.Waiting, "update"), w.Host, w.Failure),
			"check that the address leads to claybot and has a valid certificate")
	case !s.Hooked() && w.Host != "":
		d.warn("telegram-webhook-set", fmt.Sprintf("Telegram takes the token of @%s, but a webhook leads its updates to %s, which blocks the polls of claybot", name, w.Host),
			"if another program uses the bot, create a bot of your own with @BotFather; if none does, start claybot, which removes the webhook for good")
	default:
		d.ok("Telegram takes the token of @" + name)
	}
}

// askSlack asks Slack whether it takes the tokens, and for the scopes of the app. It asks for the
// address of a connection and opens none.
func (d *doctor) askSlack(ctx context.Context, i configs.Instance, s *configs.Slack) {
	if s.Install {
		d.askWorkspaces(ctx, i, s)
		return
	}
	if s.Rotates() {
		d.ok("Slack is not asked: it rotates the tokens of this app, and each refresh token counts once; claybot status shows whether Slack takes them")
		return
	}
	names := i.Names()
	c := slack.New(slack.Config{
		Name: i.Name, APIURL: s.APIURL, BotToken: s.BotToken.Value(), AppToken: s.AppToken.Value(), BotTokenName: names[0], AppTokenName: i.NameOf("app_token", "SLACK_APP_TOKEN", s.AppToken),
		Without: slackWithout(d.config, i.Name, s), Log: slog.New(slog.DiscardHandler),
	})
	bot, err := c.ExamineBot(ctx)
	switch {
	case err != nil:
		d.refused(err)
	case len(bot.Lacks) > 0:
		d.warn("slack-scopes-missing", fmt.Sprintf("Slack takes the bot token of %s in %s, but the app lacks the scopes %s", bot.Name, bot.Team, strings.Join(bot.Lacks, ", ")),
			"add them at api.slack.com/apps, OAuth & Permissions, install the app again, and restart claybot")
	default:
		d.ok("Slack takes the bot token of " + bot.Name + " in " + bot.Team)
	}
	if s.Hooked() && s.AppToken.Value() == "" {
		return // it needs none
	}
	err = c.ExamineApp(ctx)
	switch off := slack.SocketsOff(err); {
	case s.Hooked() && err == nil:
		d.problem("slack-socket-mode-on", "Socket Mode is on for this app, so Slack sends no requests to claybot", "switch it off at api.slack.com/apps, Socket Mode, or set slack.receive: socket")
	case s.Hooked() && off:
		d.ok("Socket Mode is off, so Slack sends requests")
	case err != nil:
		d.refused(err)
	default:
		d.ok("Slack takes the app token, and Socket Mode is on")
	}
}

// routesOfModels returns all models that agents ask, each with one key.
func (d *doctor) routesOfModels() (all []configs.Model) {
	models := []configs.Model{d.config.Model}
	for _, p := range d.config.Agents.Profiles {
		models = append(models, p.Model)
	}
	for _, m := range models {
		for _, r := range keyedRoutes(m) {
			same := func(o configs.Model) bool {
				return o.ID() == r.ID() && o.BaseURL == r.BaseURL && o.ProviderName() == r.ProviderName() && o.Key.Value() == r.Key.Value()
			}
			if !slices.ContainsFunc(all, same) {
				all = append(all, r)
			}
		}
	}
	return all
}

// keyedRoutes returns the routes of a model that can be asked, each with one key.
func keyedRoutes(m configs.Model) (all []configs.Model) {
	for _, r := range m.Routes() {
		if r.Demo() || r.Off() != "" {
			continue
		}
		keys := r.Credentials()
		if len(keys) == 0 {
			keys = []configs.Secret{{}}
		}
		for _, k := range keys {
			if r.Key, r.Keys = k, nil; k.Value() != "" || !k.Named() {
				all = append(all, r)
			}
		}
	}
	return all
}

// askModel asks a provider for the list of its models, which costs nothing.
func (d *doctor) askModel(ctx context.Context, m configs.Model) {
	names, err := listModels(ctx, m)
	code, text := listedOr(m, names, err)
	if code == postgres.CodeOK {
		d.ok(text)
		return
	}
	if name := quotedKey(m); code == "credential-refused" && name != "" {
		if !slices.ContainsFunc(d.config.Model.Credentials(), func(k configs.Secret) bool { return k.String() == name }) { // else the check of the model says so
			d.problem(configs.CodeQuoted, name+" contains spaces or quotes", configs.WithoutQuotes(setModelKey))
		}
		return
	}
	d.say(code, modelProblem{code: code}.level(), text, modelProblem{code: code}.next())
}

// listedOr returns what the list of the models of a provider, or its failure, means for a model with
// one key: the code and the cause.
func listedOr(m configs.Model, names []string, err error) (code, text string) {
	key := "the key"
	if m.Key.Named() {
		key = m.Key.String()
	}
	var e *llm.Error
	errors.As(err, &e)
	switch {
	case err == nil && len(names) > 0 && !slices.Contains(names, m.ID()):
		text := fmt.Sprintf("%s does not list the model %s", hostOf(m), m.ID())
		if near := configs.Nearest(m.ID(), names); near != "" {
			text += "; did you mean " + near + "?"
		}
		return "model-not-listed", text
	case err == nil:
		text := hostOf(m) + " answers"
		if m.Key.Named() {
			text = hostOf(m) + " takes " + key
		}
		if len(names) > 0 {
			text += " and lists the model"
		}
		return postgres.CodeOK, text
	case e == nil || e.Status == 0:
		return "model-unreachable", err.Error()
	case e.Account || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return "credential-refused", fmt.Sprintf("%s refuses %s: %v", hostOf(m), key, e)
	case e.Status == http.StatusNotFound:
		return "model-no-list", err.Error()
	}
	return "model-failing", err.Error()
}

// askServers connects the MCP servers that are reached over HTTP, and lists their tools. It starts no
// program and logs in nowhere.
func (d *doctor) askServers(ctx context.Context) {
	var remote []mcp.Server
	for _, s := range d.config.Tools.MCP {
		switch d.what = "MCP server " + s.Name; {
		case s.Remote.URL == "":
			d.ok("it is a program, which the doctor does not start; claybot mcp list shows it while claybot runs")
		case s.Remote.OAuth != nil:
			d.ok("it needs a login, which the doctor does not use; claybot mcp list shows it while claybot runs")
		default:
			remote = append(remote, mcpServer(s, d.config.Tools.Workspace))
		}
	}
	m := mcp.New(mcp.Config{Servers: remote, Version: version, Log: slog.New(slog.DiscardHandler), Reserved: reserved, HTTP: func(server string) *http.Client {
		client, err := mcpClient(d.config.Tools.MCP, server, egress.Policy{Own: egress.Listeners(d.config.HTTP.Addr)})
		if err != nil {
			return nil // it is refused
		}
		return client
	}})
	for _, s := range m.Probe(ctx) {
		if d.what = "MCP server " + s.Name; s.LastError != "" {
			d.warn("mcp-failing", s.LastError, "")
			continue
		}
		d.ok("it answers, with " + count(len(s.Tools)+len(s.Off), "tool"))
	}
}
