// Package openclaw reads the directory of OpenClaw, ~/.openclaw. It only reads.
//
// Where things are, by file of github.com/openclaw/openclaw and commit:
//
//	openclaw.json, older names, .env            src/config/paths.ts 009f1606, docs/gateway/configuration-reference.md 005a1ad4
//	$include                                    src/config/includes.ts 0e177a6f
//	SecretRef, ${NAME}, $NAME, markers          src/config/types.secrets.ts 11a0549c, docs/gateway/secrets.md 0af8dcff
//	models.providers                            src/config/types.models.ts 00463892
//	agents/<id>/agent/auth-profiles.json        src/agents/auth-profiles/types.ts 013c24e7 (keyRef and tokenRef are newer)
//	credentials/<channel>[-<account>]-allowFrom.json  src/pairing/pairing-store.ts 00bad34e
//	workspace and its files                     src/agents/workspace-default.ts f58c1033, src/agents/workspace.ts 0033b703
//	cron/jobs.json                              src/cron/types.ts 001978f7
//	state/openclaw.sqlite                       src/state/openclaw-state-db.paths.ts 4899d8fd, src/cron/store.ts 0549437f
//	its table cron_jobs                         src/cron/store/row-codec.ts 06070cf7, src/cron/store/schema.ts 238c4109
//	mcp.servers                                 src/config/types.mcp.ts 084ca59b
package openclaw

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claybot/claybot/imports"
)

// Default is the directory that OpenClaw uses.
const Default = "~/.openclaw"

// files are the names of the configuration, the newest first.
var files = []string{"openclaw.json", "clawdbot.json", "moldbot.json", "moltbot.json"}

// A reader reads one directory.
type reader struct {
	*imports.Find
	env    imports.Env
	dir    *imports.Dir
	config imports.Value
	agent  imports.Value     // the entry of the default agent in agents.list
	id     string            // its id
	vars   map[string]string // variables that the directory itself has
}

// Read reads a directory. The error is of one that is not OpenClaw's, or whose configuration cannot be
// read, with the line.
func Read(path string, env imports.Env) (*imports.Find, error) {
	d, err := imports.OpenDir(env.Expand(path))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	r := &reader{Find: &imports.Find{Program: "OpenClaw", Slug: "openclaw", Dir: d.Path}, env: env, dir: d, vars: make(map[string]string)}
	at := slices.IndexFunc(files, d.Has)
	if at < 0 {
		return nil, fmt.Errorf("%s is not a directory of OpenClaw: it has no %s", d.Path, files[0])
	}
	if r.config, err = d.Included(files[at]); err != nil {
		return nil, err
	}
	if !r.config.Object() {
		return nil, fmt.Errorf("%s is not a configuration of OpenClaw: it is no object", filepath.Join(d.Path, files[at]))
	}
	r.variables()
	r.agents()
	r.models()
	r.channels()
	r.workspace()
	r.jobs()
	r.servers()
	r.rest()
	return r.Find, nil
}

// variables reads the variables of the configuration and of .env.
func (r *reader) variables() {
	if text, err := r.dir.Read(".env", 1<<20); err == nil {
		for line := range strings.Lines(string(text)) {
			name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
			if ok && !strings.HasPrefix(name, "#") {
				r.vars[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
			}
		}
	}
	for _, of := range []imports.Value{r.config.At("env"), r.config.At("env", "vars")} {
		for _, name := range of.Keys() {
			if v := of.At(name).Text(); v != "" {
				r.vars[name] = v
			}
		}
	}
}

// agents finds the default agent. Others have no place of their own.
func (r *reader) agents() {
	list := r.config.At("agents", "list").List()
	at := max(0, slices.IndexFunc(list, func(v imports.Value) bool { return v.At("default").Is(true) }))
	r.id = "main"
	for i, v := range list {
		if i == at {
			r.agent, r.id = v, cmp.Or(v.At("id").Text(), r.id)
			continue
		}
		r.Leave("agent "+v.At("id").Text(), "only the default agent is imported; make a profile for it, see docs/configuration.md")
	}
	if strings.ContainsAny(r.id, `/\`) || strings.HasPrefix(r.id, ".") {
		r.id = "main"
	}
}

// of returns a setting of the default agent.
func (r *reader) of(key string) imports.Value {
	if v := r.agent.At(key); v.There() {
		return v
	}
	if v := r.config.At("agents", "defaults", key); v.There() {
		return v
	}
	return r.config.At("agent", key) // of old versions
}

// workspace reads the texts, notes and skills of the default agent.
func (r *reader) workspace() {
	named := r.of("workspace").Text()
	inside := "workspace"
	if named != "" {
		inside = filepath.Base(named)
	}
	path := filepath.Join(r.dir.Path, inside) // also of a copy of the directory that is elsewhere now
	if !r.dir.Folder(inside) && named != "" {
		path = r.env.Expand(named)
	}
	r.AddSkills(r.dir, "skills")
	if !r.dir.Folder(inside) && r.dir.Has(inside) && filepath.Dir(path) == r.dir.Path {
		r.Leave(inside, "it is a link that leads out of the directory")
		return
	}
	d, err := imports.OpenDir(path)
	if err != nil {
		r.Leave("workspace", err.Error())
		return
	}
	defer d.Close()
	r.Workspace = d.Path
	r.AddPrompt(d, nil, "IDENTITY.md", "SOUL.md", "AGENTS.md", "USER.md", "TOOLS.md")
	r.AddNotes(d, append([]string{"MEMORY.md"}, d.List("memory", ".md")...)...)
	managed := r.Skills
	r.Skills = nil
	r.AddSkills(d, "skills", ".agents/skills")
	r.Skills = append(r.Skills, managed...)
	r.heartbeat(d.Text(r.Find, "HEARTBEAT.md"))
	for _, name := range []string{"BOOT.md", "BOOTSTRAP.md"} {
		if d.Has(name) {
			r.Leave(name, "claybot runs nothing when it starts")
		}
	}
}

// heartbeat reads the checklist and its settings.
func (r *reader) heartbeat(text string) {
	h := r.of("heartbeat")
	every := cmp.Or(h.At("every").Text(), "30m")
	if strings.Trim(every, "0msh") == "" {
		if text != "" {
			r.Leave("HEARTBEAT.md", "the heartbeat is switched off there")
		}
		return
	}
	hours := ""
	if from, to := h.At("activeHours", "start").Text(), h.At("activeHours", "end").Text(); from != "" && to != "" {
		hours = from + "-" + to
	}
	r.Checklist(text, every, hours)
}

// servers reads the MCP servers.
func (r *reader) servers() {
	all := r.config.At("mcp", "servers")
	for _, name := range all.Keys() {
		if all.At(name, "enabled").Is(false) {
			r.Leave("MCP server "+name, "it is switched off there")
			continue
		}
		r.AddServer(name, all.At(name), func(v string) (imports.Secret, string) { return r.text(v) })
	}
}

// places are the groups of the configuration that are read above, or that say nothing that claybot needs.
var places = []string{"agent", "agents", "channels", "cron", "env", "mcp", "meta", "models", "secrets", "skills", "wizard", "auth", "$schema", "logging", "update"}

// rest names what has no place.
func (r *reader) rest() {
	for _, key := range r.config.Keys() {
		if !slices.Contains(places, key) {
			r.Leave(key, "claybot has other settings for it, or none; see docs/configuration.md")
		}
	}
	if r.dir.Has("agents/" + r.id + "/sessions") {
		r.Leave("conversations", "claybot begins new ones")
	}
}
