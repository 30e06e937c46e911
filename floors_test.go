package claybot_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The law of the tree: a folder is a contract, its subfolders are its
// implementations, only cmd imports an implementation, and imports go strictly
// down. docs/ARCHITECTURE.md says why.
func TestFloors(t *testing.T) {
	tree, err := readTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.files) < 10 {
		t.Fatalf("only %d files found: the test does not see the tree", len(tree.files))
	}
	for _, violation := range tree.check() {
		t.Error(violation)
	}
}

// floors are the folders that may hold packages. "x/*" stands for the
// implementations of x.
var floors = map[string]int{
	".": 0, "lazyregexp": 0, "service": 0, "examples": 0,
	"storage": 1, "client": 1, "connectors": 1, "llm": 1, "workspace": 1, "platforms": 1, "devices": 1, "egress": 1, "flows": 1,
	"inbox": 2, "runs": 2, "tools": 2, "cluster": 2, "configs": 2, "nodes": 2,
	"storage/*": 2, "llm/*": 2, "workspace/*": 2, "devices/*": 2,
	"texts": 3, "imports": 3,
	"runs/*": 4, "tools/*": 4, "connectors/*": 4, "imports/*": 4, "delivery": 4, "budgets": 4,
	"people":    5,
	"questions": 6, "subagents": 6,
	"profiles":    7,
	"worker":      8,
	"overview":    9,
	"agentsystem": 10,
	"web":         11,
	"web/*":       12,
	"cmd/*":       13,
}

// footings are folders that implementations of one contract stand on. They lie between
// the contract and these, and no other package imports them.
var footings = []string{"storage/relational", "tools/textfile", "llm/provider", "connectors/schedule"}

// forbidden are folder names that say nothing about what is inside.
var forbidden = []string{"pkg", "internal", "util", "utils", "common", "types", "models", "events", "interfaces", "manager"}

// shared are the modules that more than one folder may import, with the reason.
// golang.org/x is the standard library's own workshop and needs none.
var shared = map[string]string{
	"github.com/gorilla/websocket": "Slack and Discord bring messages over WebSockets, each in a protocol of its own",
}

// testOnly are the modules that never become a part of the binary.
var testOnly = []string{
	"pgregory.net/rapid", "github.com/rogpeppe/go-internal",
	"github.com/prometheus/client_model", "github.com/prometheus/common", // their weight: see web/metrics
}

// maxLines is the length of a file at which a noun is missing.
const maxLines = 500

// A tree is the source of a module, as far as imports and comments go.
type tree struct {
	module  string
	modules []string // required ones
	folders []string // all, with Go files or without
	files   []source
}

// A source is one Go file.
type source struct {
	name, dir string
	pkg       string
	doc       string // package comment
	imports   []string
	lines     int
	test      bool
}

// readTree reads the files itself: the output of a go list subprocess would be
// cached by go test although the files have changed.
func readTree(fsys fs.FS) (*tree, error) {
	t := new(tree)
	if err := t.readModule(fsys); err != nil {
		return nil, err
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || name == "bin" || name == "dist") {
				return fs.SkipDir
			}
			t.folders = append(t.folders, name)
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		return t.readFile(fsys, name)
	})
	return t, err
}

var (
	moduleLine  = regexp.MustCompile(`(?m)^module (\S+)`)
	requireLine = regexp.MustCompile(`(?m)^(?:require)?\s+([a-z0-9.\-]+\.[^\s]+) v\S+`)
)

func (t *tree) readModule(fsys fs.FS) error {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return err
	}
	name := moduleLine.FindSubmatch(mod)
	if name == nil {
		return fmt.Errorf("go.mod: no module line")
	}
	t.module = string(name[1])
	for _, m := range requireLine.FindAllSubmatch(mod, -1) {
		t.modules = append(t.modules, string(m[1]))
	}
	return nil
}

func (t *tree) readFile(fsys fs.FS, name string) error {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	s := source{name: name, dir: path.Dir(name), pkg: f.Name.Name, lines: bytes.Count(text, []byte("\n"))}
	s.test = strings.HasSuffix(name, "_test.go")
	s.doc = docText(f)
	for _, i := range f.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, i.Path.Value, err)
		}
		s.imports = append(s.imports, imported)
	}
	t.files = append(t.files, s)
	return nil
}

func docText(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return strings.TrimSpace(f.Doc.Text())
}

// check returns all violations of the law, sorted.
func (t *tree) check() []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, folder := range t.folders {
		if slices.Contains(forbidden, path.Base(folder)) {
			report("%s: folders are not called %s; find the noun", folder, path.Base(folder))
		}
	}
	documented := make(map[string]bool)
	importers := make(map[string]map[string]bool) // module -> folders
	for _, f := range t.files {
		if _, ok := floor(f.dir); !ok && !f.test {
			report("%s: the folder has no floor", f.name)
		}
		if f.test {
			continue // tests stand outside: they may use any implementation and emulator
		}
		documented[f.dir] = documented[f.dir] || f.pkg == "main" && f.doc != "" || strings.HasPrefix(f.doc, "Package "+f.pkg+" ")
		if f.lines > maxLines {
			report("%s: %d lines, at most %d; which noun is missing?", f.name, f.lines, maxLines)
		}
		for _, imported := range f.imports {
			if why := t.importFault(f.dir, imported); why != "" {
				report("%s: import %s: %s", f.name, imported, why)
			}
			if module := t.thirdParty(imported); module != "" && f.dir != "." {
				if importers[module] == nil {
					importers[module] = make(map[string]bool)
				}
				importers[module][f.dir] = true
			}
		}
	}
	for dir, ok := range documented {
		if !ok {
			report("%s: no package comment", dir)
		}
	}
	for module, dirs := range importers {
		if owners := owners(slices.Sorted(maps.Keys(dirs))); len(owners) > 1 && shared[module] == "" {
			report("%s: imported by %s; one folder owns a library", module, strings.Join(owners, " and "))
		}
	}
	slices.Sort(found)
	return found
}

// floor returns the floor of a folder. An emulator or a suite, whose name ends
// in test, stands on the floor of its parent.
func floor(dir string) (int, bool) {
	if helper(dir) {
		return floor(path.Dir(dir))
	}
	if n, ok := floors[dir]; ok {
		return n, true
	}
	top, rest, deep := strings.Cut(dir, "/")
	n, ok := floors[top+"/*"]
	return n, ok && deep && (top == "cmd" || !strings.Contains(rest, "/"))
}

func helper(dir string) bool { return strings.Contains(dir, "/") && strings.HasSuffix(dir, "test") }

// suite reports whether dir helps to test a contract, and so may try it on
// implementations of lower floors.
func suite(dir string) bool { return helper(dir) && !implementation(path.Dir(dir)) }

func implementation(dir string) bool {
	return !helper(dir) && strings.Contains(dir, "/") && !command(dir)
}

func footing(dir string) bool { return slices.Contains(footings, dir) }

// standsOn reports whether dir is an implementation of the same contract as a footing.
func standsOn(dir, on string) bool {
	return implementation(dir) && !footing(dir) && path.Dir(dir) == path.Dir(on)
}

func command(dir string) bool { return strings.HasPrefix(dir, "cmd/") }

// importFault says why a file of the folder dir must not import a package,
// empty when it may.
func (t *tree) importFault(dir, imported string) string {
	if module := t.thirdParty(imported); module != "" {
		switch {
		case dir == ".":
			return "the vocabulary stands on the standard library alone"
		case slices.Contains(testOnly, module):
			return "only tests import it"
		}
		return ""
	}
	to, ok := t.folder(imported)
	if !ok {
		return "" // standard library
	}
	from, known := floor(dir)
	target, targetKnown := floor(to)
	switch {
	case !known || !targetKnown:
		return "one of the two folders has no floor"
	case footing(to):
		if !standsOn(dir, to) {
			return "only implementations of " + path.Dir(to) + " stand on it"
		}
	case command(dir):
		if command(to) && !strings.HasPrefix(to, dir+"/") {
			return "commands do not import each other"
		}
	case command(to):
		return "commands are not imported"
	case helper(dir) && strings.HasPrefix(dir, to+"/"):
		return "" // a helper knows what it helps to test
	case helper(to):
		return "only tests and commands import a helper of tests"
	case implementation(to) && !suite(dir):
		return "only commands import an implementation"
	case target >= from:
		return fmt.Sprintf("floor %d imports floor %d; imports go strictly down", from, target)
	}
	return ""
}

// folder is the folder of a package of this module.
func (t *tree) folder(imported string) (string, bool) {
	if imported == t.module {
		return ".", true
	}
	return strings.CutPrefix(imported, t.module+"/")
}

// thirdParty is the module of an import from outside; empty for the standard
// library, this module and golang.org/x.
func (t *tree) thirdParty(imported string) string {
	if _, ours := t.folder(imported); ours || strings.HasPrefix(imported, "golang.org/x/") {
		return ""
	}
	if host, _, _ := strings.Cut(imported, "/"); !strings.Contains(host, ".") {
		return ""
	}
	longest := ""
	for _, m := range t.modules {
		if (imported == m || strings.HasPrefix(imported, m+"/")) && len(m) > len(longest) {
			longest = m
		}
	}
	if longest == "" {
		return imported // not in go.mod: the compiler will say so
	}
	return longest
}

// owners leaves out the folders that lie below another one of the sorted list.
func owners(dirs []string) []string {
	var top []string
	for _, d := range dirs {
		if !slices.ContainsFunc(top, func(o string) bool { return strings.HasPrefix(d, o+"/") }) {
			top = append(top, d)
		}
	}
	return top
}
