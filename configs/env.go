package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// A variable of the environment sets a key.
type variable struct {
	name, path string
	set        func(r *reader, at place, v string, c *Config)
}

// variables returns the variables that keys declare, and those that set more than a key.
func variables() []variable {
	var all []variable
	schema := declarations()
	for _, path := range schema.paths {
		if k := schema.keys[path]; k.env != "" && !strings.Contains(path, "[]") {
			all = append(all, variable{k.env, path, func(r *reader, at place, v string, c *Config) { r.variable(at, v, k, c.groupOf(path)) }})
		}
	}
	return append(all, specialVariables()...)
}

// variable stores a value of the environment in the struct that to points to. One of the
// store or of a member of a cluster that is not valid is an error and no warning:
// members must agree on them.
func (r *reader) variable(at place, v string, k key, to any) {
	before := len(r.warnings)
	if s, ok := k.field(to).(*Secret); ok {
		*s = NewSecret(at.key, v)
		return
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: v}
	if k.typ.Kind() == reflect.Slice {
		n = &yaml.Node{Kind: yaml.SequenceNode}
		for _, it := range commas(at, v) {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: it.text})
		}
	}
	setterOf(k)(r, at, n, k, to)
	if !ofCluster(at.key) {
		return
	}
	for _, w := range r.warnings[before:] {
		text, _ := ignored(w)
		r.reject(fmt.Errorf("%s: %s", w.Key, text))
	}
	r.warnings = r.warnings[:before]
}

// ofCluster reports a variable that makes a process one of several.
func ofCluster(name string) bool {
	return strings.HasPrefix(name, "CLAYBOT_NODE") || strings.HasPrefix(name, "CLAYBOT_STORAGE")
}

// specialVariables are not read as the key that they set.
func specialVariables() []variable {
	secret := func(name, path string, of func(*Config) *Secret) variable {
		return variable{name, path, func(_ *reader, at place, v string, c *Config) { *of(c) = NewSecret(at.key, v) }}
	}
	return []variable{
		{"CLAYBOT_HTTP_TLS_CERT", "http.tls_cert", func(_ *reader, _ place, v string, c *Config) { c.HTTP.Guard.TLSCert = v }},
		{"CLAYBOT_HTTP_TLS_KEY", "http.tls_key", func(_ *reader, _ place, v string, c *Config) { c.HTTP.Guard.TLSKey = v }},
		{"CLAYBOT_HTTP_INSECURE", "http.insecure", func(r *reader, at place, v string, c *Config) {
			if yes, err := (key{words: "1,0"}).truth(v); err != nil {
				r.refuse(at, err)
			} else {
				c.HTTP.Guard.Insecure = yes
			}
		}},
		secret("OPENAI_API_KEY", "model.key", func(c *Config) *Secret { return &c.Model.env.openAI }),
		{variableBase, "model.base_url", func(r *reader, at place, v string, c *Config) {
			if u, err := address(v); err != nil {
				r.refuse(at, err)
			} else {
				c.Model.env.base = u
			}
		}},
		secret("ANTHROPIC_API_KEY", "model.key", func(c *Config) *Secret { return &c.Model.env.anthropic }),
		{"OTEL_EXPORTER_OTLP_HEADERS", "otlp.headers", func(r *reader, at place, v string, c *Config) { readOTLPHeaders(r, at, v, &c.Telemetry.OTLP) }},
		// The parts of a key belong together: one of the environment leaves nothing of
		// that of the file.
		{"AWS_ACCESS_KEY_ID", "files.access_key", func(_ *reader, at place, v string, c *Config) {
			f := &c.Storage.Files
			f.AccessKey, f.SecretKey, f.SessionToken, f.keyFault = NewSecret(at.key, v), Secret{}, Secret{}, ""
		}},
		secret("AWS_SECRET_ACCESS_KEY", "files.secret_key", func(c *Config) *Secret { return &c.Storage.Files.SecretKey }),
		secret("AWS_SESSION_TOKEN", "files.session_token", func(c *Config) *Secret { return &c.Storage.Files.SessionToken }),
	}
}

// variablePaths returns the path of the key that each variable sets. Callers only read it.
var variablePaths = sync.OnceValue(func() map[string]string {
	paths := make(map[string]string)
	for _, v := range variables() {
		paths[v.name] = v.path
	}
	return paths
})

// variableNames are the variables that claybot reads, sorted, and the one that names the file. Callers only
// read it.
var variableNames = sync.OnceValue(func() []string {
	return append(slices.Sorted(maps.Keys(variablePaths())), "CLAYBOT_CONFIG")
})

// commas splits a list of values with commas between them.
func commas(at place, v string) (items []item) {
	for entry := range strings.SplitSeq(v, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			items = append(items, item{at, entry})
		}
	}
	return items
}

// environment puts the variables that are set above what the file said.
func (r *reader) environment(c *Config) {
	if v, _ := r.lookup("CLAYBOT_HTTP_PROXIES"); strings.TrimSpace(v) != "" {
		c.HTTP.Guard.Insecure = false // the file, such as that of the image, does not count on this proxy
	}
	for _, v := range variables() {
		value, ok := r.lookup(v.name)
		path := v.path
		void := !ok && r.void(v.name, path)
		if !ok && !void {
			continue
		}
		at, before := place{key: v.name}, len(r.warnings)
		to := c.ownerOf(path)
		if v.name == variableBase { // it is not for every model
			to = (*baseOf)(&c.Model.env)
		}
		switch {
		case !void:
			if path != "model.key" && v.name != variableBase { // see modelEnviron
				c.Source.set = c.Source.above(path, v.name, value)
			}
			v.set(r, at, value, c)
		case strings.HasPrefix(v.name, "CLAYBOT_STORAGE_"): // see variable
			r.reject(fmt.Errorf("%s: %s", v.name, emptyVariable))
		default:
			r.warn(at, emptyVariable+"; ignored")
		}
		// Which models the accounts and the address of the environment are for is known
		// later, see modelEnviron.
		if refused := r.close(to, at, path, before); !refused && path != "model.key" && v.name != variableBase {
			if o, ok := to.(owner); ok {
				o.on(path)
			}
			r.mended(path, v.name)
		}
	}
}

// emptyVariable is what is wrong with a variable that is set to nothing.
const emptyVariable = "is set and has no value; unset it or give it one"

// void reports an address of the environment that is set to nothing: something else
// was meant than the default. The standard of OpenTelemetry takes it as not set.
func (r *reader) void(name, path string) bool {
	_, set := r.env(name)
	word := lastName(path)
	return set && !strings.HasPrefix(name, "OTEL_") && classOf(path) == Destination && (strings.HasSuffix(word, "url") || word == "data_dir")
}

const variableBase = "OPENAI_BASE_URL"

// baseOf is what the environment says about the address of models.
type baseOf providerEnv

func (e *baseOf) off(_, why string) string {
	e.fault = why
	return "models that it is for are off"
}

func (*baseOf) on(string) {}

// An Override is what the flags of the command line say; empty fields say
// nothing.
type Override struct {
	DataDir  string
	HTTP     string
	Access   string
	Log      string
	LogLevel string
	Model    string
}

// Override puts flags above everything else. Unlike a file, a command line is
// being watched as it is given, so a bad value is an error and nothing is
// applied.
func (c *Config) Override(o Override) error {
	r := &reader{env: func(string) (string, bool) { return "", false }}
	next := *c
	for _, f := range []struct{ flag, value, path string }{
		{"--data-dir", o.DataDir, "data_dir"},
		{"--http", o.HTTP, "http.addr"},
		{"--access", o.Access, "access.mode"},
		{"--log", o.Log, "log"},
		{"--log-level", o.LogLevel, "log_level"},
		{"--model", o.Model, "model.name"},
	} {
		if f.value != "" {
			k, _ := keyAt(f.path)
			r.variable(place{key: f.flag}, f.value, k, next.groupOf(f.path))
			next.Source.set = next.Source.above(f.path, f.flag, f.value)
		}
	}
	if o.HTTP != "" { // any other reason for disabling the page still applies
		if next.HTTP.on("http.addr"); next.HTTP.Off() != "" {
			next.HTTP.Addr = c.HTTP.Addr
		}
	}
	if o.Access != "" {
		next.Access.faults = faults{}
	}
	var err error
	if next.DataDir, err = next.expand(next.DataDir); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if len(r.warnings) > 0 {
		text, _, _ := strings.Cut(r.warnings[0].Text, ";")
		return fmt.Errorf("%s: %s", r.warnings[0].Key, text)
	}
	if o.Model != "" {
		next.Model.part(c.Model)
		next.renameModel(c.Model.Name)
	}
	*c = next
	return nil
}

// renameModel gives the profiles that use the common model its new name.
func (c *Config) renameModel(old string) {
	profiles := make(map[string]Profile, len(c.Agents.Profiles))
	for name, p := range c.Agents.Profiles {
		if p.Model.Name == old {
			began := p.Model
			p.Model.Name = c.Model.Name
			p.Model.part(began)
		}
		profiles[name] = p
	}
	c.Agents.Profiles = profiles
}
