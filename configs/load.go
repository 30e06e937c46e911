package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// FileName is the file that Load reads when nobody names another.
const FileName = "claybot.yaml"

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
// directory is unknown (~ without HOME), or that a variable CLAYBOT_NODE_* or
// CLAYBOT_STORAGE_* breaks its rule.
func Load(path string, env func(string) (string, bool), names ...string) (Config, []Warning, error) {
	r := &reader{env: env, environ: names}
	named := path != ""
	if !named {
		path, named = r.lookup("CLAYBOT_CONFIG")
	}
	if !named {
		path = FileName
	}
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		c, err := r.finish(Default())
		return c, r.warnings, err
	}
	if err != nil {
		return Config{}, nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	c, err := r.read(path, text)
	return c, r.warnings, err
}

// read reads the text of the file at path and puts the environment above it.
func (r *reader) read(path string, text []byte) (Config, error) {
	root, more, err := parse(path, text)
	if err != nil {
		return Config{}, err
	}
	r.text = string(text)
	c := Default()
	c.File, r.dir = path, filepath.Dir(path)
	c.Heartbeat.Zone = nil // until the file says it: that of cron, see finish
	if root != nil {
		group(r, place{file: path}, root, &c, rootKeys())
	}
	if more {
		r.warn(place{file: path, line: 1, key: "---"}, "the file holds several documents; only the first is read")
	}
	return r.finish(c)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	return text, err
}

// parse returns the mapping at the root of the first document, nil for an
// empty one, and whether more documents follow.
func parse(path string, text []byte) (root *yaml.Node, more bool, err error) {
	if line := badText(text); line != 0 {
		return nil, false, fmt.Errorf("%s:%d: not a text in UTF-8", path, line)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, syntaxError(path, text, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, false, syntaxError(path, text, err)
		}
		more = true
	}
	root = doc.Content[0]
	if root.Kind == yaml.MappingNode {
		return root, more, nil
	}
	if empty(root) {
		return nil, more, nil
	}
	return nil, false, fmt.Errorf("%s:%d: want lines such as \"access: pairing\", found %s", path, root.Line, kind(root))
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
	yamlLine  = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	yamlQuote = regexp.MustCompile(`(anchor) '.*'`) // may be a mistyped secret
	// The library counts lines from 0 in what its parser says, from 1 in what
	// its scanner says, and leaves out line 0.
	yamlFromZero = regexp.MustCompile(`^(did not find expected (<|node content|'-'|key|',')|found (undefined|duplicate|incompatible) )`)
)

// syntaxError puts the file and the line in front of a message of the parser.
func syntaxError(path string, text []byte, err error) error {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("%s:1: not YAML", path)
	}
	line, lineErr := strconv.Atoi(m[1])
	if lineErr != nil || yamlFromZero.MatchString(m[2]) {
		line++
	}
	line = min(line, 1+bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n"))) // the end is the last line
	return fmt.Errorf("%s:%d: %s", path, line, yamlQuote.ReplaceAllString(m[2], "$1"))
}

// kind names what n is, for messages.
func kind(n *yaml.Node) string {
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
