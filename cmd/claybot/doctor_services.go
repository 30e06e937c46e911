package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/workspace/docker"
	"github.com/claybot/claybot/workspace/local"
)

// database checks a database that cluster members share.
func (d *doctor) database(ctx context.Context) bool {
	s := d.config.Storage
	if s.URL.Value() == "" {
		return d.problem("database-url-empty", fmt.Sprintf("the storage URL is set to %s, which cannot be read", s.URL), "give it a value, or remove storage.url to use the data directory")
	}
	for _, f := range postgres.Examine(ctx, postgres.Config{URL: s.URL.Value(), Pooler: s.Pooler, NoListen: !s.Listen, Conns: s.Connections}) {
		d.what = f.What
		d.say(f.Code, f.Level, f.Text, f.Next)
	}
	return true
}

// files checks the object store, if one is configured.
func (d *doctor) files(ctx context.Context) bool {
	f := d.config.Storage.Files
	switch {
	case f.Fault != "":
		if _, ofSetting := offBy(&d.config, f.Fault); ofSetting {
			return true // the setting has the finding
		}
		return d.problem("files-url-wrong", f.Fault, "")
	case !f.Wanted():
		return true
	case !d.config.Storage.Shared():
		return d.warn("files-url-unused", "files.url has no effect: without a database, files are stored in the data directory", "set storage.url, or remove files.url")
	}
	if _, err := openBlobs(ctx, f); err != nil {
		return d.advice("files-unusable", errors.Unwrap(err))
	}
	return d.ok("claybot can write, read and delete in the bucket " + f.Bucket)
}

// docker checks the engine if a profile needs it.
func (d *doctor) docker(ctx context.Context) bool {
	if len(d.profilesWith(configs.WorkspaceDocker)) == 0 {
		return true
	}
	engine := docker.New(docker.Config{Host: d.engine})
	defer func() { _ = engine.Close() }() // nothing was opened
	err := engine.Check(ctx)
	version := ""
	if err == nil {
		_, version, err = engine.Versions(ctx)
	}
	if code, text, next := unusable(configs.WorkspaceDocker, err); code != postgres.CodeOK {
		d.warn(code, text, next)
	} else {
		d.ok("the engine responds, version " + version)
	}
	by := slices.DeleteFunc(d.profilesWith(configs.WorkspaceDocker), func(name string) bool {
		return d.config.Agents.Profiles[name].Workspace.Network != configs.NetworkHostUnsafe
	})
	if len(by) > 0 {
		d.warn("docker-network-host", "commands of agents reach whatever this machine reaches, also private addresses and the metadata of clouds, in the profiles "+strings.Join(by, ", "),
			"set workspaces.network to full, which closes those, unless they need raw TCP or UDP")
	}
	if d.config.Storage.Shared() {
		d.ok("agents find their containers on all members only if all members use the same engine (DOCKER_HOST)")
	}
	return true
}

// skills checks that the folder of skills is there.
func (d *doctor) skills(context.Context) bool {
	if why := skillsMissing(&d.config); why != "" {
		d.warn("skills-missing", why, "")
	}
	return true
}

// skillsMissing returns why the folder that the configuration names has no skills; empty: it is one, or none is
// named.
func skillsMissing(c *configs.Config) string {
	dir := c.Agents.Skills
	if dir == "" {
		return ""
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "there are no skills: the folder " + dir + ", which skills_dir names, does not exist"
	case err != nil:
		return "there are no skills: the folder that skills_dir names cannot be read: " + err.Error()
	case !info.IsDir():
		return "there are no skills: " + dir + ", which skills_dir names, is no folder"
	}
	return ""
}

// programs checks that this machine has the programs of MCP servers that run on it. It starts none.
func (d *doctor) programs(context.Context) bool {
	missing := missingPrograms(d.config.Tools)
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		d.what = "MCP server " + name
		d.warn("mcp-program-missing", missing[name].Error(), programNext(name))
	}
	return true
}

// missingPrograms returns, by the names of the MCP servers, what this machine lacks to start them.
func missingPrograms(t configs.Tools) map[string]error {
	all := make(map[string]error)
	for _, s := range t.MCP {
		if err := mcpServer(s, t.Workspace).Missing(); err != nil {
			all[s.Name] = err
		}
	}
	return all
}

// programNext is the next step where the program of an MCP server is missing.
func programNext(server string) string {
	return "install it, or correct mcp." + server + "; then: claybot nodes test mcp/" + server
}

// local reports workspaces without isolation; those that anyone could use are a problem.
func (d *doctor) local(context.Context) bool {
	by := d.profilesWith(configs.WorkspaceLocal)
	if len(by) == 0 {
		return true
	}
	if err := d.config.CheckLocal(); err != nil {
		return d.advice("local-refused", err)
	}
	free := slices.DeleteFunc(slices.Clone(by), func(name string) bool {
		return !slices.Contains(d.config.Agents.Profiles[name].Workspace.Container.Unsafe, local.Unconfined)
	})
	how := "as the user who runs claybot"
	if len(free) < len(by) {
		confined, err := local.New(local.Config{}).Confinement()
		if err != nil {
			return d.advice("local-refused", err)
		}
		how = confined
		if len(free) > 0 {
			how += " (in " + strings.Join(free, ", ") + " as the user who runs claybot)"
		}
	}
	return d.warn("local-commands", "commands of agents run on this machine, "+how+", in the profiles "+strings.Join(by, ", "),
		"set workspaces.provider to docker or off, unless you trust everyone who writes to the bot")
}

// profilesWith returns the profiles whose workspaces a provider opens.
func (d *doctor) profilesWith(provider string) []string {
	names := slices.Sorted(maps.Keys(d.config.Agents.Profiles))
	return slices.DeleteFunc(names, func(name string) bool { return d.config.Agents.Profiles[name].Workspace.Provider != provider })
}

// A credential is a token or key and its form.
type credential struct {
	name  string
	value configs.Secret
	form  *lazyregexp.Regexp // nil: unknown
	where string             // to get it
	said  bool               // another check says why it is missing
}

// instances checks the credentials of each connector.
func (d *doctor) instances(ctx context.Context) bool {
	all := d.config.Connectors.Instances()
	for _, i := range all {
		d.what = i.Name
		if why := i.Settings.Off(); why != "" {
			if _, ofSetting := offBy(&d.config, why); !ofSetting {
				d.problem("connector-off", "it is off: "+why, connectorOffNext)
			}
			continue
		}
		var needed []credential
		_, said := unreadSecret(&d.config, groupsOf(i.Name)...)
		_, hooks := i.Settings.(*configs.Webhook) // which say themselves what they lack
		for n, c := range i.Settings.Credentials() {
			needed = append(needed, credential{i.Names()[n], c.Value, c.Form, c.Where, said && c.Value.Named() || hooks})
		}
		d.credentials(needed...)
		switch s := i.Settings.(type) {
		case *configs.Webhook:
			d.hook(i.Name, s)
		case *configs.Telegram:
			d.paired(ctx, i.Name)
		case *configs.Slack:
			d.rotation(i, s)
			d.installs(i, s)
		}
	}
	if d.what = "connectors"; len(all) == 0 {
		d.ok("Telegram, Slack and Discord are not configured; the web page and the terminal work without them")
	}
	return true
}

// hook says where a webhook takes requests, or why it takes none.
func (d *doctor) hook(name string, s *configs.Webhook) {
	at := hookURL(d.config, d.config.HTTP.Addr, name)
	if d.config.HTTP.Addr == configs.Off {
		at = ""
	}
	code, text, next := hookFault(name, s, at)
	_, ofSetting := hookSetting(&d.config, name, s)
	switch {
	case code == "":
		d.ok("it takes requests at " + at)
	case !ofSetting: // otherwise the setting has the finding
		d.problem(code, text, next)
	}
}

// hookFault returns the code, the cause and the next step of a webhook that takes no request at an address; empty for
// one that does.
func hookFault(name string, s *configs.Webhook, at string) (code, text, next string) {
	const get = ": take it from the sender of the webhook, or make one with: openssl rand -base64 32"
	switch {
	case s.Secret.Value() == "":
		return "webhook-no-secret", "it takes no request, because it has no secret", "set connectors." + name + ".secret" + get
	case s.Callback != "" && s.CallbackSecret.Value() == "":
		return "webhook-no-secret", "it takes no request, because its callback has no secret", "set connectors." + name + ".callback_secret" + get
	case at == "":
		return "http-off", "it takes no request, because the HTTP server is off", "set http.addr (CLAYBOT_HTTP_ADDR), and restart claybot"
	}
	return "", "", ""
}

// setModelKey is the next step for a key of a model that cannot be used.
const setModelKey = "copy it from the provider"

func (d *doctor) model(context.Context) bool {
	m := d.config.Model
	if m.Demo() {
		return d.warn("model-demo", "it is the demo model, which replies from a script", "set a model with: claybot setup model")
	}
	if why := m.Off(); why != "" {
		if _, ofSetting := offBy(&d.config, why); ofSetting {
			return true // the setting has the finding
		}
		return d.problem("model-off", "it is off: "+why, correctModel)
	}
	var all []credential
	for _, k := range m.Credentials() {
		all = append(all, credential{k.String(), k, nil, setModelKey, false})
	}
	if len(all) == 0 {
		return d.warn("model-no-key", noKey(m), setKey)
	}
	return d.credentials(all...)
}

// credentials checks the form of tokens and keys. It calls no one.
func (d *doctor) credentials(all ...credential) bool {
	good := true
	for _, c := range all {
		name, v := c.name, c.value.Value()
		if c.value.Named() {
			name = c.value.String()
		}
		switch {
		case v == "" && c.said:
			good = false
		case v == "":
			good = d.problem("credential-missing", name+" is not set or cannot be read", c.where) && false
		case configs.HasQuotes(v):
			good = d.problem(configs.CodeQuoted, name+" contains spaces or quotes", configs.WithoutQuotes(c.where)) && false
		case c.form != nil && !c.form.MatchString(v):
			good = d.problem(configs.CodeMalformed, name+" is malformed", c.where) && false
		}
	}
	if !good {
		return true
	}
	what := "the credential is"
	if len(all) > 1 {
		what = "all credentials are"
	}
	what += " well formed"
	if !d.online {
		what += "; claybot doctor --online asks whether the service accepts it"
	}
	return d.ok(what)
}
