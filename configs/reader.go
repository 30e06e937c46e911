package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/platforms"
)

// A Warning is one setting that was not taken, in words for the operator. It
// never holds a secret.
type Warning struct {
	File string // empty for an environment variable
	Line int    // from 1; 0 for an environment variable
	Key  string // the full key, such as agents.default.maxBatch
	Text string // what is wrong, the rule, and what holds instead
	Near string // the known key that an unknown one resembles, if any
	Next string // what to do about it, where that is more than to correct it
	Off  bool   // something is switched off by it, as the text says

	code   string // see Code; empty: CodeValue
	meant  string // the path of Near, as Keys lists it; empty in an entry of a list
	advice bool   // see Advice
	slip   bool   // the key is Near mistyped, nothing else, and little hangs on it, see mild
	path   string // of the key that switched something off
	fault  string // of models, where it is not known whether there are any
}

// Group is the group of keys that the warning switches off, or a part of; empty where
// it switches off nothing.
func (w Warning) Group() string {
	group, _, _ := strings.Cut(w.path, ".")
	return group
}

// Concerns reports whether the warning is about a key, a key below it, or a group around it. Of the entry of a list, it is
// about the list: it has the number of the entry, not its name.
func (w Warning) Concerns(key string) bool {
	if list, _, ok := ListOf(key); ok {
		key = list
	}
	key = fitKey(key)
	return within(w.Key, key) || within(key, w.Key)
}

// Explains reports whether the warning is about what switches a part off, where Off of the part says why.
func (w Warning) Explains(why string) bool {
	cause, _, _ := strings.Cut(why, "; did you mean ")
	return cause != "" && w.Off && strings.Contains(w.String(), cause)
}

// Unapplied is a warning about a setting that only a restart applies: what held
// before holds still.
func (w Warning) Unapplied() Warning {
	text, _, _ := strings.Cut(w.Text, "; ")
	w.Text, w.Off = text+"; the old value still holds, until claybot is restarted", false
	return w
}

// Code names the kind of the warning. It stays the same when the words change.
func (w Warning) Code() string {
	return cmp.Or(w.code, CodeValue)
}

// Rename returns text, which is that of the file, with the key of the warning written as Near. ok is false
// where a person must decide: other names are near, more than a slip lies between them, Near belongs into
// another group or has a value already, or it, or a key below it, is not harmless, see Class, or for the
// machine alone, see IsLocal: it may say where data goes, who may write or do what, or what is spent.
func (w Warning) Rename(text []byte) (next []byte, ok bool) {
	group, from := cutLast(w.Key)
	within, to := cutLast(w.Near)
	lines := bytes.SplitAfter(text, []byte("\n"))
	if w.code != CodeKey || w.Off || !w.slip || group != within || w.Line < 1 || w.Line > len(lines) {
		return nil, false
	}
	if _, set := Written(text, w.Near); set {
		return nil, false
	}
	key, err := regexp.Compile(`(^|[\s{,])(["']?)` + regexp.QuoteMeta(from) + `(["']?\s*:)`)
	line := lines[w.Line-1]
	if err != nil || len(key.FindAllIndex(line, 2)) != 1 {
		return nil, false
	}
	lines[w.Line-1] = key.ReplaceAll(line, []byte("${1}${2}"+to+"${3}"))
	return bytes.Join(lines, nil), true
}

// cutLast cuts a key before its last name.
func cutLast(key string) (group, name string) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:]
}

// The codes of warnings.
const (
	CodeVariable = "config-variable-unknown" // an environment variable that is not read
	CodeKey      = "config-key-unknown"
	CodeSecret   = "config-secret-in-file"
	CodeMissing  = "config-secret-missing" // a secret that cannot be read
	CodeTool     = "config-tool-unknown"
	CodeValue    = "config-value" // any other
)

// String is the warning as one line: file:line: key: text.
func (w Warning) String() string {
	s := w.Key + ": " + w.Text
	if w.Near != "" {
		s += "; did you mean " + w.Near + "?"
	}
	if w.File != "" {
		s = fmt.Sprintf("%s:%d: %s", w.File, w.Line, s)
	}
	return s
}

// Refusal is the warning as a refusal of a text that is not written says it: without the line there, and
// without what it would switch off.
func (w Warning) Refusal() string {
	w.File = ""
	w.Text = strings.TrimSuffix(w.Text, "; ignored")
	if at := strings.LastIndex(w.Text, "; "); at >= 0 && strings.HasSuffix(w.Text, until) {
		w.Text = w.Text[:at]
	}
	return w.String()
}

// Advice reports whether the warning is about what is allowed, and holds as it is written.
func (w Warning) Advice() bool { return w.advice }

// A place is where a setting was written.
type place struct {
	file string
	line int
	key  string
	path string // of the key as Keys lists it
}

// sub is the place of a key within the group at p.
func (p place) sub(name string, line int) place {
	return place{file: p.file, line: line, key: joinPath(p.key, fit(name)), path: joinPath(p.path, name)}
}

// fit returns the name of a key as messages have it.
func fit(name string) string {
	return strings.Trim(quote(name), `"`)
}

// fitKey is fit for all names of a key.
func fitKey(key string) string {
	names := strings.Split(key, ".")
	for i, name := range names {
		names[i] = fit(name)
	}
	return strings.Join(names, ".")
}

// ShownKey returns what was given as a key for messages: without what looks like a secret.
func ShownKey(key string) string {
	if shapes.MatchString(key) { // which may have dots
		return secretLike
	}
	return fitKey(key)
}

// String is the place as a sentence begins with it.
func (p place) String() string {
	if p.file == "" {
		return p.key
	}
	return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.key)
}

// A reader turns written values into settings and collects what it refuses.
// Its checks return false when the value is refused; the caller then leaves
// the setting as it was.
type reader struct {
	env      func(string) (string, bool)
	dir      string          // of the file, for relative file: references
	referred map[string]bool // variables that the file names
	files    bool            // the file has a group files
	environ  []string        // the names of all variables
	warnings []Warning
	profiles func(*Config) // reads the agents group, when there is one
	// person is the first id of the person who has this one; it is there when the
	// profiles are read.
	person func(id string) string
	mixed  bool // whose ids belong together is not known

	instances platforms.Instances // that the file has
	blocks    []string            // the keys of the root that have a value

	budgetAt  []place         // of the budgets of the configuration, in their order
	rejected  error           // the first setting that stops the start
	promptEnv []item          // of prompts.env
	secrets   map[string]bool // variables that secrets are read from
	tools     []toolRule      // of rules of approvals, see Config.UnknownTools
	texts     []ownText       // see Config.WrongTexts
}

func (r *reader) warn(at place, format string, args ...any) { r.warnAs("", at, format, args...) }

// warnAs is warn with a code.
func (r *reader) warnAs(code string, at place, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{File: at.file, Line: at.line, Key: at.key, Text: fmt.Sprintf(format, args...), code: code})
}

// reject notes a setting without which nothing may start. The first one is told.
func (r *reader) reject(err error) {
	if r.rejected == nil {
		r.rejected = err
	}
}

// lookup returns the variable name, trimmed; empty counts as not set.
func (r *reader) lookup(name string) (string, bool) {
	v, ok := r.env(name)
	v = strings.TrimSpace(v)
	return v, ok && v != ""
}

// refuse warns of a value that is not valid, with the nearest of the known words where
// it is another one.
func (r *reader) refuse(at place, err error) {
	r.warn(at, "%v; ignored", err)
	if e := (*wordError)(nil); errors.As(err, &e) && !slices.Contains(e.known, e.word) {
		r.warnings[len(r.warnings)-1].Near = Nearest(e.word, e.known)
	}
}

// A wordError is of a value that begins with one of several words.
type wordError struct {
	error
	word  string
	known []string
}

// maxSecret is more than any token has.
const maxSecret = 16 << 10

// reference resolves env:NAME and file:path. A secret that was asked for but
// cannot be read keeps its name, so that its feature can say what is missing.
func (r *reader) reference(at place, v string) Secret {
	switch v {
	case "env:":
		r.warn(at, "env: names no variable; write env:NAME")
		return NewSecret(v, "")
	case "file:":
		r.warn(at, "file: names no file; write file:path")
		return NewSecret(v, "")
	}
	if name, ok := strings.CutPrefix(v, "env:"); ok {
		if r.secrets == nil {
			r.secrets = make(map[string]bool)
		}
		r.secrets[name] = true
		if value, ok := r.lookup(name); ok {
			return NewSecret(v, value)
		}
		r.warnAs(CodeMissing, at, "the environment variable %s is not set", quote(name))
		return NewSecret(v, "")
	}
	path, ok := strings.CutPrefix(v, "file:")
	if !ok {
		r.warnAs(CodeSecret, at, "a secret must not stand in the file; write env:NAME or file:path instead; ignored")
		return NewSecret(at.key, "")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	value, err := secretFile(path)
	if err != nil {
		r.warnAs(CodeMissing, at, "%v", err)
	}
	return NewSecret(v, value)
}

// secretFile reads one line from a regular file.
func secretFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("the secret's file cannot be read: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxSecret:
		return "", fmt.Errorf("%s is not a file of one line", quote(path))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the secret's file cannot be read: %w", err)
	}
	value := strings.TrimSpace(string(b))
	if value == "" || strings.ContainsAny(value, "\r\n\x00") {
		return "", fmt.Errorf("%s does not hold exactly one line", quote(path))
	}
	return value, nil
}

// secretive reports a value that looks like a token, whatever key it is under.
func secretive(v string) bool {
	for _, prefix := range [...]string{"sk-", "xoxb-", "xoxp-", "xoxe-", "xoxe.", "xapp-", "Bearer "} {
		if strings.HasPrefix(v, prefix) {
			return true
		}
	}
	return platforms.TelegramToken.MatchString(v)
}

// secretLike stands for what is not shown.
const secretLike = "a value that looks like a secret"

// quote shows a refused value: at most 80 characters, control characters
// escaped, and nothing that looks like a token.
func quote(v string) string {
	if secretive(v) {
		return secretLike
	}
	if runes := []rune(v); len(runes) > 80 {
		v = string(runes[:80]) + "…"
	}
	return strconv.Quote(v)
}
