package texts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors"
)

// untranslated are the files of this package without texts for people.
var untranslated = []string{"agents.go", "clock.go", "effects_agents.go", "german.go", "german_actions.go", "german_effects.go", "german_engines.go", "german_more.go", "replace.go", "voice.go"}

// verbs are the values in a text, with the number of each if it has one.
var verbs = regexp.MustCompile(`%(?:\[(\d)\])?(?:\.\d)?[a-z%]`)

// words reports whether a literal says something to people.
func words(text string) bool {
	return strings.ContainsFunc(verbs.ReplaceAllString(text, ""), func(r rune) bool { return r >= 'a' && r <= 'z' })
}

// catalogue returns the texts of this package, with where each is written: what has several
// words, what is a constant, what is said, and the first column of tables.
func catalogue(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(untranslated, name) {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, text := range said(n) {
				if words(text) {
					all[text] = files.Position(n.Pos()).String()
				}
			}
			return true
		})
	}
	for name, texts := range elsewhere {
		source, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		found := texts.FindAllStringSubmatch(string(source), -1)
		if len(found) == 0 {
			t.Errorf("%s has no texts", name)
		}
		for _, m := range found {
			all[m[1]] = name
		}
	}
	return all
}

// elsewhere are the texts that are written where they belong to: about invalid answers where
// answers are read, the kinds of secrets where they are found, and what approvals say, where they are made.
var elsewhere = map[string]*regexp.Regexp{
	"question_check.go":           regexp.MustCompile(`(?:complain\(|yesOrNo\(v, )"([^"]+)"`),
	"tools/asked.go":              regexp.MustCompile(`(?:say\(|MoreArguments = )"([^"]+)"`),
	"tools/approval.go":           regexp.MustCompile(`errors.New\("(the arguments must[^"]+)"`),
	"tools/mcp/elicit.go":         regexp.MustCompile(`asks = "([^"]+)"`),
	"tools/rules.go":              regexp.MustCompile(`say\("([^"]+)"`),
	"tools/batch.go":              regexp.MustCompile(`say\("([^"]+)"`),
	"storage/notices.go":          regexp.MustCompile(`(?m)^\tNotice\w+ += "([^"]+)"`),
	"runs/plan/execute.go":        regexp.MustCompile(`interrupted = "([^"]+)"`),
	"cmd/claybot/doctor_codes.go": regexp.MustCompile(`(?m)^\t\{[^,]+, "([^"]+)", .*, inChats\},$`),
	"platforms/secrets.go":        regexp.MustCompile(`(?m)^\t+\{?"(an? [^"]+)",`),
}

// said returns the texts of one node.
func said(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.BasicLit:
		if text := literal(n); strings.Contains(strings.TrimSpace(text), " ") {
			return []string{text}
		}
	case *ast.ValueSpec:
		var all []string
		for _, v := range n.Values {
			all = append(all, literal(v))
		}
		return all
	case *ast.CompositeLit:
		if _, table := n.Type.(*ast.MapType); table {
			var all []string
			for _, e := range n.Elts {
				all = append(all, literal(e.(*ast.KeyValueExpr).Value))
			}
			return all
		}
		if len(n.Elts) > 0 && n.Type == nil {
			return []string{literal(n.Elts[0])}
		}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Say", "In", "Count"}, fn.Sel.Name) {
			return []string{literal(n.Args[min(len(n.Args)-1, map[string]int{"Count": 1}[fn.Sel.Name])])}
		}
	}
	return nil
}

func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(l.Value) // it was parsed
	return text
}

// values returns the values of a text, sorted, by their numbers.
func values(text string) []string {
	var all []string
	next := 1
	for _, m := range verbs.FindAllStringSubmatch(text, -1) {
		verb := m[0][len(m[0])-1:]
		if verb == "%" {
			continue
		}
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		all = append(all, strconv.Itoa(next)+verb)
		next++
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Every language has every text, with the same values and as many forms as it needs, and no text
// that is not said any more.
func TestLanguages(t *testing.T) {
	all := catalogue(t)
	for _, c := range commandHelp() {
		all[c] = "connectors.Commands"
	}
	for language, g := range grammars {
		if language == English {
			continue
		}
		for _, text := range slices.Sorted(maps.Keys(all)) {
			said, ok := g.texts[text]
			if !ok {
				t.Errorf("%s: %s has no text for\n%q: \"\",", all[text], language, text)
				continue
			}
			forms, want := strings.Split(said, "|"), 1
			if strings.Contains(text, "|") {
				want = g.forms
			}
			if len(forms) != want {
				t.Errorf("%s: %q has %d forms, want %d", language, said, len(forms), want)
			}
			for _, form := range forms {
				given, source := values(form), values(strings.Split(text, "|")[0])
				if want > 1 {
					source = values(text[strings.LastIndexByte(text, '|')+1:])
				}
				if !slices.Equal(given, source) && !(want > 1 && len(given) < len(source)) {
					t.Errorf("%s: %q has the values %q, want those of %q, %q", language, form, given, text, source)
				}
			}
		}
		for text := range g.texts {
			if _, ok := all[text]; !ok {
				t.Errorf("%s has %q, which claybot says no more", language, text)
			}
		}
	}
}

func commandHelp() (all []string) {
	for _, c := range slices.Concat(connectors.Commands, connectors.OperatorCommands) {
		all = append(all, c.Help)
	}
	return all
}

// A language is understood as people write it, and as it is listed.
func TestLanguageOf(t *testing.T) {
	for word, want := range map[string]Language{
		"de": German, "de-AT": German, "DE_de": German, "deutsch": German, "German": German, "Deutsch (de)": German,
		"english (EN)": English, "Englisch": English, "en-GB": English, "klingon": "", "": "", "(de)": "", "germanic": "",
	} {
		if got, ok := LanguageOf(word); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v", word, got, ok)
		}
	}
}
