package claybot_test

import (
	"cmp"
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
	"strings"
	"testing"
	"testing/fstest"
)

// TestSize measures the tree and prints the result with -v; make size shows it. It
// fails only when it sees no tree; TestBars checks the result.
func TestSize(t *testing.T) {
	m, err := measure(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if m.lines["product"] == 0 || len(m.interfaces) == 0 || len(m.structs) == 0 {
		t.Fatal("the test does not see the tree")
	}
	t.Logf("\n%s", m)
}

// The bars: what is larger has more than one concern; see docs/ARCHITECTURE.md.
const (
	maxInterface = 6 // methods, in the whole product
	maxMethods   = 30
	maxFields    = 15
)

// parts are the folders whose structs must stay below maxMethods and maxFields.
var parts = []string{"agentsystem", "inbox", "runs", "delivery", "questions", "subagents", "budgets"}

// TestBars fails for interfaces and structs above the bars.
func TestBars(t *testing.T) {
	m, err := measure(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range m.over() {
		t.Error(v)
	}
}

// TestBarsHold: what is planted above a bar is reported, and what is at it is not.
func TestBarsHold(t *testing.T) {
	methods := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	tree := func(n int) fstest.MapFS {
		text := "package runs\n\ntype i interface {\n" + methods(maxInterface+n, "M%d()\n") + "}\n\ntype f struct {\n" + methods(maxFields+n, "F%d int\n") + "}\n\ntype m struct{}\n\n" + methods(maxMethods+n, "func (*m) M%d() {}\n")
		return fstest.MapFS{"runs/a.go": {Data: []byte(text)}}
	}
	for above, want := range [][]string{nil, {"interface runs.i", "struct runs.f", "struct runs.m"}} {
		m, err := measure(tree(above))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range m.over() {
			got = append(got, strings.Split(v, ":")[0])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%d above the bars: %q, want %q", above, got, want)
		}
	}
}

// over returns what is above the bars.
func (m *measurement) over() (all []string) {
	for _, i := range m.interfaces {
		if i.n > maxInterface {
			all = append(all, fmt.Sprintf("interface %s: %d methods, at most %d; which callers use which?", i.name, i.n, maxInterface))
		}
	}
	for _, s := range m.structs {
		if slices.Contains(parts, path.Dir(strings.Replace(s.name, ".", "/", 1))) && (s.methods > maxMethods || s.fields > maxFields) {
			all = append(all, fmt.Sprintf("struct %s: %d methods and %d fields, at most %d and %d; which part of it is a type of its own?", s.name, s.methods, s.fields, maxMethods, maxFields))
		}
	}
	return all
}

// A measurement is the size of the Go code of a tree.
type measurement struct {
	lines      map[string]int // by kind
	packages   int            // of the product
	interfaces []counted      // by methods, embedded interfaces of the package included
	structs    []structSize
	branches   int // for a shared store, outside of cmd
}

type counted struct {
	name string
	n    int
}

type structSize struct {
	name            string
	fields, methods int
}

// sharedBranch matches the places where code distinguishes one member from several.
var sharedBranch = regexp.MustCompile(`IsAlone\(\)|\b[Ss]hared [!=]= nil|\bTree [!=]= nil`)

// kindOf says what a file is for: the product, tests, what tests stand on, benchmarks
// and rigs, or the demo.
func kindOf(name string) string {
	switch dir := path.Dir(name); {
	case strings.HasSuffix(name, "_test.go"):
		return "tests"
	case helper(dir):
		return "test support"
	case dir == "cmd/claybench":
		return "bench"
	case dir == "cmd/release":
		return "release"
	case strings.HasPrefix(name, "cmd/claybot/demo"):
		return "demo"
	}
	return "product"
}

func measure(fsys fs.FS) (*measurement, error) {
	m := &measurement{lines: make(map[string]int)}
	packages := make(map[string]*declared)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || name == "bin" || name == "dist") {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		kind := kindOf(name)
		m.lines[kind] += strings.Count(string(text), "\n")
		if kind != "product" {
			return nil
		}
		if !strings.HasPrefix(name, "cmd/") {
			m.branches += len(sharedBranch.FindAllIndex(text, -1))
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			return err
		}
		p := packages[path.Dir(name)]
		if p == nil {
			p = &declared{name: f.Name.Name, interfaces: make(map[string]*ast.InterfaceType), structs: make(map[string]*ast.StructType), methods: make(map[string]int)}
			packages[path.Dir(name)] = p
		}
		p.read(f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.packages = len(packages)
	for dir, p := range packages {
		p.addTo(m, dir)
	}
	slices.SortFunc(m.interfaces, func(a, b counted) int { return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name)) })
	return m, nil
}

// declared are the types that a package declares.
type declared struct {
	name       string
	interfaces map[string]*ast.InterfaceType
	structs    map[string]*ast.StructType
	methods    map[string]int // of a type
}

func (p *declared) read(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				p.methods[receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				switch x := spec.Type.(type) {
				case *ast.InterfaceType:
					p.interfaces[spec.Name.Name] = x
				case *ast.StructType:
					p.structs[spec.Name.Name] = x
				}
			}
		}
	}
}

// receiver is the name of the type of a method.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func (p *declared) addTo(m *measurement, dir string) {
	for name := range p.interfaces {
		m.interfaces = append(m.interfaces, counted{dir + "." + name, p.width(name)})
	}
	for name, s := range p.structs {
		fields := 0
		for _, f := range s.Fields.List {
			fields += max(1, len(f.Names))
		}
		m.structs = append(m.structs, structSize{dir + "." + name, fields, p.methods[name]})
	}
}

// width is how many methods an interface has.
func (p *declared) width(name string) (n int) {
	for _, f := range p.interfaces[name].Methods.List {
		embedded, ok := f.Type.(*ast.Ident)
		switch {
		case len(f.Names) > 0:
			n += len(f.Names)
		case ok && p.interfaces[embedded.Name] != nil:
			n += p.width(embedded.Name)
		}
	}
	return n
}

// String is the table that make size prints.
func (m *measurement) String() string {
	var b strings.Builder
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(m.lines)) {
		fmt.Fprintf(&b, "%-28s %7d lines\n", kind, m.lines[kind])
		total += m.lines[kind]
	}
	fmt.Fprintf(&b, "%-28s %7d lines\n", "all Go", total)
	fmt.Fprintf(&b, "%-28s %7d\n", "packages of the product", m.packages)
	fmt.Fprintf(&b, "%-28s %7d\n", "shared-store branches", m.branches)
	const top = 5
	for _, i := range m.interfaces[:min(top, len(m.interfaces))] {
		fmt.Fprintf(&b, "widest interfaces             %6d methods  %s\n", i.n, i.name)
	}
	for _, by := range []struct {
		what string
		n    func(structSize) int
	}{{"methods", func(s structSize) int { return s.methods }}, {"fields", func(s structSize) int { return s.fields }}} {
		slices.SortFunc(m.structs, func(x, y structSize) int { return cmp.Or(by.n(y)-by.n(x), strings.Compare(x.name, y.name)) })
		for _, s := range m.structs[:min(top, len(m.structs))] {
			fmt.Fprintf(&b, "largest structs               %6d %-8s %s\n", by.n(s), by.what, s.name)
		}
	}
	return b.String()
}
