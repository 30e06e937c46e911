package configs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
)

// FileName is the file that Load reads unless another is named.
const FileName = "claybot.yaml"

// variableFile names the file that is read instead.
const variableFile = "CLAYBOT_CONFIG"

// maxFile is the largest file that is read, in bytes.
const maxFile = 1 << 20

// Load reads the file at path, or the one that CLAYBOT_CONFIG names, or
// ./claybot.yaml if there is one, and puts the environment above it. env is
// os.LookupEnv in the daemon. Those of names, which are all variables there are, that
// are close to one that is read are warned of.
//
// The Config is complete and usable whenever the error is nil, however many
// warnings there are. An error means that the file was named but is missing,
// that it cannot be read as YAML (it names the file and the line), that the data
// directory is unknown (~ without HOME), that a variable CLAYBOT_NODE_* or
// CLAYBOT_STORAGE_* breaks its rule, or that a file was meant and is not read:
// CLAYBOT_CONFIG is empty, ./claybot.yaml leads nowhere, or is called claybot.yml.
func Load(path string, env func(string) (string, bool), names ...string) (Config, []Warning, error) {
	path, named, err := Path(path, env)
	if err != nil {
		return Config{}, nil, err
	}
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		if err := unmeant(); err != nil {
			return Config{}, nil, err
		}
		r := &reader{env: env, environ: names}
		c, err := r.finish(Default())
		return c, r.warnings, err
	}
	if err != nil {
		return Config{}, nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return LoadText(path, text, env, names...)
}

// ErrLarge is of a text that is larger than what is read of a file.
var ErrLarge = fmt.Errorf("the file is larger than %d bytes", maxFile)

// LoadText is Load for a text that the file at path has, or is to have.
func LoadText(path string, text []byte, env func(string) (string, bool), names ...string) (Config, []Warning, error) {
	if len(text) > maxFile {
		return Config{}, nil, fmt.Errorf("configuration %s: %w", path, ErrLarge)
	}
	r := &reader{env: env, environ: names}
	c, err := r.read(path, text)
	return c, r.warnings, err
}

// VersionOf returns a short name of the text of a file: texts that differ have different ones.
func VersionOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Path returns the path of the file that Load reads, and whether path or CLAYBOT_CONFIG names
// it.
func Path(path string, env func(string) (string, bool)) (_ string, named bool, err error) {
	if path != "" {
		return path, true, nil
	}
	path, named = env(variableFile)
	switch path = strings.TrimSpace(path); {
	case !named:
		return FileName, false, nil
	case path == "":
		return "", true, fmt.Errorf("%s: %s", variableFile, emptyVariable)
	}
	return path, true, nil
}

// read reads the text of the file at path and puts the environment above it.
func (r *reader) read(path string, text []byte) (Config, error) {
	root, err := parse(path, text)
	if err != nil {
		return Config{}, err
	}
	if r.refer(root, false); root != nil {
		r.files = has(root, "files")
	}
	r.meet(root)
	c := Default()
	c.Source.File, r.dir = path, filepath.Dir(path)
	c.Source.Version = VersionOf(text)
	c.Schedule.Heartbeat.Zone = nil // until the file says it: that of cron, see finish
	if root != nil {
		c.Source.keyed, c.Source.root = len(root.Content) > 0, root
		r.group(place{file: path}, root, &c)
	}
	return r.finish(c)
}

// A TextError is what is wrong with the text of a file that cannot be read as settings.
type TextError struct {
	File string
	Line int // from 1
	Why  string
}

func (e *TextError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why) }

// ErrMisnamed is of a directory that has a configuration file which Load does not read.
var ErrMisnamed = errors.New("is not read")

// unmeant returns what is wrong where FileName is missing, as far as a file was
// meant to be read: a link that leads nowhere, or a file with another ending.
func unmeant() error {
	if _, err := os.Lstat(FileName); err == nil {
		return fmt.Errorf("configuration %s: it is a link to a file that is missing", FileName)
	}
	other := strings.TrimSuffix(FileName, ".yaml") + ".yml"
	if _, err := os.Lstat(other); err == nil {
		return fmt.Errorf("configuration: %s %w: rename it to %s, or name it with -c %s", other, ErrMisnamed, FileName, other)
	}
	return nil
}

// readFile returns the text of a file, as far as it is not too large for LoadText. It waits for no pipe, and reads no
// device, which may have no end.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && !info.IsDir(): // reading a directory says what it is
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// parse returns the mapping at the root of the only document, nil for none. Empty
// documents do not count. Of two that hold something, the second one might be what
// was meant, so they are an error.
func parse(path string, text []byte) (root *yaml.Node, err error) {
	if line := badText(text); line != 0 {
		return nil, &TextError{path, line, "not a text in UTF-8"}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return root, nil
		} else if err != nil {
			return nil, syntaxError(path, text, err)
		}
		next := doc.Content[0]
		switch {
		case empty(next):
		case root != nil:
			return nil, &TextError{path, next.Line, "a second document begins here, and only one is read: remove the line --- before it"}
		case next.Kind != yaml.MappingNode:
			return nil, &TextError{path, next.Line, "want lines such as \"access: pairing\", found " + kindOf(next)}
		default:
			root = next
		}
	}
}

// badText returns the first line that is not plain UTF-8 text, 0 for none.
func badText(text []byte) int {
	line := 1
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		if c == utf8.RuneError && size == 1 || c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return line
		}
		if c == '\n' {
			line++
		}
		text = text[size:]
	}
	return 0
}

var (
	yamlLine  = lazyregexp.New(`^yaml: (?:line (\d+): )?(.*)`)
	yamlTwice = lazyregexp.New(`^yaml: unmarshal errors:\n  line (\d+): mapping key "(.*)" already defined at line (\d+)`)
	yamlQuote = lazyregexp.New(`(anchor) '.*'`) // may be a mistyped secret
	// The library counts lines from 0 in what its parser says, from 1 in what
	// its scanner says, and leaves out line 0.
	yamlFromZero = lazyregexp.New(`^(did not find expected (<|node content|'-'|key|',')|found (undefined|duplicate|incompatible) )`)
)

// syntaxError puts the file and the line in front of a message of the parser.
func syntaxError(path string, text []byte, err error) error {
	if m := yamlTwice.FindStringSubmatch(err.Error()); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			return &TextError{path, line, fmt.Sprintf("%s %s %s already; remove one of the two", ShownKey(m[2]), unreadTwice, m[3])}
		}
	}
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return &TextError{path, 1, "not YAML"}
	}
	line, lineErr := strconv.Atoi(m[1])
	if lineErr != nil || yamlFromZero.MatchString(m[2]) {
		line++
	}
	line = min(line, 1+bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n"))) // the end is the last line
	return &TextError{path, line, yamlQuote.ReplaceAllString(m[2], "$1")}
}

// kindOf names what n is, for messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of keys"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		return "a single value"
	}
}

// empty reports a key that was written without a value.
func empty(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// refer notes what the file itself does with variables: those of env:NAME, and those
// that it hands on, in groups such as prompts.env.
func (r *reader) refer(n *yaml.Node, within bool) {
	if n == nil {
		return
	}
	if r.referred == nil {
		r.referred = make(map[string]bool)
	}
	if name, ok := strings.CutPrefix(n.Value, "env:"); n.Kind == yaml.ScalarNode && (ok || within) {
		r.referred[name] = true
	}
	for i, c := range n.Content {
		hands := within
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key := n.Content[i-1].Value
			hands = hands || key == "env" || key == "secrets"
		}
		r.refer(c, hands)
	}
}
