package openclaw

import (
	"strings"

	"github.com/claybot/claybot/imports"
	"github.com/claybot/claybot/lazyregexp"
)

var (
	template = lazyregexp.New(`^\$\{([A-Z_][A-Z0-9_]{0,127})\}$|^\$([A-Z][A-Z0-9_]{0,127})$|^(?:secretref-env|__env__):([A-Z][A-Z0-9_]{0,127})$`)
	// marker is the name of a variable in the place of a key, as generated lists of models have it.
	marker   = lazyregexp.New(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_(KEY|TOKEN)$`)
	embedded = lazyregexp.New(`\$\{[A-Z_][A-Z0-9_]*\}`)
)

// text returns the secret that a text is, or why it cannot be had.
func (r *reader) text(v string) (s imports.Secret, why string) {
	v = strings.TrimSpace(v)
	if m := template.FindStringSubmatch(v); m != nil {
		return r.variable(m[1] + m[2] + m[3])
	}
	if embedded.MatchString(v) {
		return s, "it is made of variables and other text; set it by hand"
	}
	return imports.Secret{Text: strings.ReplaceAll(v, "$${", "${")}, ""
}

// variable returns the secret that a variable holds. The value that the directory has for it counts unless
// the environment has another one, as in OpenClaw.
func (r *reader) variable(name string) (imports.Secret, string) {
	s, why := r.env.Secret(name)
	now, _ := r.env.Lookup(name)
	if v := r.vars[name]; v != "" && (why != "" || v == now) {
		return imports.Secret{Text: v}, ""
	}
	return s, why
}

// secret returns the secret of a value, which is a text or a SecretRef; none for none.
func (r *reader) secret(v imports.Value) (s imports.Secret, why string) {
	if !v.Object() {
		return r.text(v.Text())
	}
	id := v.At("id").Text()
	switch source := v.At("source").Text(); source {
	case "env":
		return r.variable(id)
	case "file":
		provider := v.At("provider").Text()
		if provider == "" {
			provider = r.config.At("secrets", "defaults", "file").Text()
		}
		return r.file(r.config.At("secrets", "providers", provider), id)
	case "exec":
		return s, "a command there finds it, which claybot does not run; store it with claybot config set"
	default:
		return s, "it is a reference of a kind that claybot does not know"
	}
}

// file returns a secret of a file, which is in the directory.
func (r *reader) file(provider imports.Value, id string) (s imports.Secret, why string) {
	path := r.env.Expand(provider.At("path").Text())
	name, inside := strings.CutPrefix(path, r.dir.Path+"/")
	if !inside {
		name, inside = strings.CutPrefix(provider.At("path").Text(), Default+"/") // of a copy of the directory
	}
	if path == "" || !inside {
		return s, "it is in a file outside of the directory; store it with claybot config set"
	}
	text, err := r.dir.Read(name, 1<<20)
	if err != nil {
		return s, "its file cannot be read: " + err.Error()
	}
	if provider.At("mode").Text() == "singleValue" {
		return imports.Secret{Text: strings.TrimSpace(string(text))}, ""
	}
	v, err := imports.ParseJSON5(text)
	if err != nil {
		return s, "its file is no JSON"
	}
	for key := range strings.SplitSeq(strings.TrimPrefix(id, "/"), "/") {
		v = v.At(strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	if v.Text() == "" {
		return s, "its file does not have it"
	}
	return imports.Secret{Text: v.Text()}, ""
}
