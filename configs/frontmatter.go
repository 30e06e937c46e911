package configs

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
)

// ErrNoFrontmatter: a file does not begin with a line of three dashes.
var ErrNoFrontmatter = errors.New("the file does not begin with front matter (a line ---, settings, a line ---)")

// A Frontmatter is a Markdown file whose head has settings between two lines of
// three dashes.
type Frontmatter struct {
	Fields []Field // as they stand in the file; nested ones as "outer.inner"
	Body   string  // what follows, without blank lines around it
}

// A Field is one single value of a front matter.
type Field struct {
	Key   string
	Value string
	Line  int // of the file, from 1
}

// A LineError is a mistake in a line of a file.
type LineError struct {
	Line int // from 1; 0: not known
	Text string
}

func (e *LineError) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// ReadFrontmatter reads a file. The error is ErrNoFrontmatter, or a *LineError
// for settings that are no YAML, are nested deeper than one level, or stand
// there twice. It never panics, whatever the text.
func ReadFrontmatter(text string) (f Frontmatter, err error) {
	return readFrontmatter(text, false)
}

// ReadManifest is ReadFrontmatter for files that other programs write: a list of
// single values is one value, with commas between them, and what a group has besides
// single values is left out.
func ReadManifest(text string) (f Frontmatter, err error) {
	return readFrontmatter(text, true)
}

func readFrontmatter(text string, lists bool) (f Frontmatter, err error) {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return f, ErrNoFrontmatter
	}
	head, body, ok := cutHead(rest)
	if !ok {
		return f, &LineError{1, "the front matter has no closing line ---"}
	}
	f.Body = strings.TrimSpace(body)
	defer func() { // a parser that breaks over a file must not take the rest with it
		if x := recover(); x != nil {
			err = &LineError{1, "the front matter cannot be read"}
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		return f, yamlError(err)
	}
	if len(doc.Content) == 0 {
		return f, nil
	}
	if lists {
		joinLists(doc.Content[0])
	}
	return f, f.add("", doc.Content[0])
}

// joinLists makes single values of the lists in a mapping.
func joinLists(n *yaml.Node) {
	for i := 1; i < len(n.Content); i += 2 {
		list := n.Content[i]
		if list.Kind == yaml.MappingNode {
			flatten(list)
		}
		if list.Kind != yaml.SequenceNode {
			continue
		}
		words := make([]string, 0, len(list.Content))
		for _, c := range list.Content {
			if c.Kind != yaml.ScalarNode {
				words = nil // add says what is wrong
				break
			}
			words = append(words, c.Value)
		}
		if words != nil {
			n.Content[i] = scalarNode(strings.Join(words, ","))
		}
	}
}

// flatten leaves the single values of a mapping.
func flatten(n *yaml.Node) {
	var single []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k, v := n.Content[i], n.Content[i+1]; k.Kind == yaml.ScalarNode && v.Kind == yaml.ScalarNode && keyForm.MatchString(k.Value) {
			single = append(single, k, v)
		}
	}
	n.Content = single
}

// cutHead splits at the first line that is three dashes.
func cutHead(text string) (head, body string, ok bool) {
	if body, ok := strings.CutPrefix(text, "---\n"); ok || text == "---" {
		return "", body, true
	}
	if head, body, ok := strings.Cut(text, "\n---\n"); ok {
		return head, body, true
	}
	head, ok = strings.CutSuffix(text, "\n---")
	return head, "", ok
}

func (f *Frontmatter) add(prefix string, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return &LineError{n.Line + 1, "want settings of the form key: value, found " + kindOf(n)}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := prefix + k.Value
		_, twice := f.Get(key)
		switch {
		case k.Kind != yaml.ScalarNode || !keyForm.MatchString(k.Value):
			return &LineError{k.Line + 1, "a key must be a single word of letters, digits, - and _"}
		case twice:
			return &LineError{k.Line + 1, key + " stands there twice"}
		case v.Kind == yaml.MappingNode && prefix == "":
			if err := f.add(key+".", v); err != nil {
				return err
			}
		case v.Kind != yaml.ScalarNode:
			return &LineError{v.Line + 1, fmt.Sprintf("%s: want a single value, found %s", key, kindOf(v))}
		default:
			value := v.Value
			if v.Tag == "!!null" {
				value = ""
			}
			f.Fields = append(f.Fields, Field{key, value, k.Line + 1})
		}
	}
	return nil
}

var keyForm = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

var headLine = lazyregexp.New(`line (\d+): `)

// yamlError names the line of the file, which begins one before the YAML.
func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := headLine.FindStringSubmatch(text); m != nil {
		_, _ = fmt.Sscan(m[1], &line) // digits
		line++
		text = strings.Replace(text, m[0], "", 1)
	}
	return &LineError{line, text}
}

// Get returns the field of a key.
func (f Frontmatter) Get(key string) (Field, bool) {
	for _, x := range f.Fields {
		if x.Key == key {
			return x, true
		}
	}
	return Field{}, false
}

// Set replaces the value of a key, or adds it at the end; an empty value
// removes it.
func (f *Frontmatter) Set(key, value string) {
	for i, x := range f.Fields {
		if x.Key != key {
			continue
		}
		if value == "" {
			f.Fields = append(f.Fields[:i:i], f.Fields[i+1:]...)
		} else {
			f.Fields[i].Value = value
		}
		return
	}
	if value != "" {
		f.Fields = append(f.Fields, Field{Key: key, Value: value})
	}
}

// String is the file. What ReadFrontmatter makes of it is f again.
func (f Frontmatter) String() string {
	root := &yaml.Node{Kind: yaml.MappingNode}
	groups := make(map[string]*yaml.Node)
	for _, x := range f.Fields {
		to, key := root, x.Key
		if outer, inner, nested := strings.Cut(x.Key, "."); nested {
			if groups[outer] == nil {
				groups[outer] = &yaml.Node{Kind: yaml.MappingNode}
				root.Content = append(root.Content, scalarNode(outer), groups[outer])
			}
			to, key = groups[outer], inner
		}
		to.Content = append(to.Content, scalarNode(key), scalarNode(x.Value))
	}
	head := ""
	if len(root.Content) > 0 {
		b, _ := yaml.Marshal(root) // nodes of strings always marshal
		head = string(b)
	}
	return "---\n" + head + "---\n" + f.Body + "\n"
}

func scalarNode(v string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(v)
	return n
}

// ReadYAML reads a YAML file that another program wrote, as maps, lists and single values. The error is a
// *LineError. It never panics, whatever the text.
func ReadYAML(text []byte) (v map[string]any, err error) {
	defer func() {
		if x := recover(); x != nil {
			v, err = nil, &LineError{1, "the file cannot be read"}
		}
	}()
	if err := yaml.Unmarshal(text, &v); err != nil {
		bad := &LineError{Text: err.Error()}
		if errors.As(yamlError(err), &bad) && bad.Line > 0 {
			bad.Line-- // no line of dashes is before it
		}
		return nil, bad
	}
	return v, nil
}
