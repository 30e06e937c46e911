package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	// quoted is what a text of claybot repeats or names: code, what people wrote, and values.
	quoted = regexp.MustCompile("(?s)```.*?```|`[^`]*`|“[^”]*”|„[^“]*“")
	// englishWords are words of English sentences that no German one has.
	englishWords = regexp.MustCompile(`(?i)\b(the|and|is|are|this|that|with|which|waits?|your|you|of|for|asked|skip|yes|answer with)\b`)
	// valuesIn are the values in a text of the catalogue, and what separates its plural forms.
	valuesIn = regexp.MustCompile(`%(\[\d\])?[a-z%]|[|\n]`)
)

// label begins a whole text among the results of english.
const label = "\x00"

// english returns the parts between the values of the texts of the catalogue that people read in
// English unless they are said in their language, and the whole texts.
var english = sync.OnceValues(func() (parts []string, err error) {
	for _, name := range []string{"german.go", "german_more.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "texts", name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, _ := strconv.Unquote(kv.Key.(*ast.BasicLit).Value)
			said, _ := strconv.Unquote(kv.Value.(*ast.BasicLit).Value)
			if key != said {
				parts = append(parts, label+key)
			}
			for _, part := range valuesIn.Split(key, -1) {
				if part = strings.Trim(part, " .:;,“”"); strings.Count(part, " ") > 1 && !strings.Contains(said, part) {
					parts = append(parts, part)
				}
			}
			return false
		})
	}
	return parts, nil
})

// speaksGerman fails where the bot has shown a person, in a text or on a button, English of the
// catalogue, or words of an English sentence that the catalogue lacks.
func (r *rig) speaksGerman(ts *testscript.TestScript, where string) {
	parts, err := english()
	ts.Check(err)
	chat, _ := person(ts, where)
	for _, m := range r.telegram.Sent(chat) {
		for _, b := range m.Buttons() {
			if slices.Contains(parts, label+b) {
				ts.Fatalf("the button %q is in English", b)
			}
		}
		for _, text := range append(m.Buttons(), m.Source) {
			for _, part := range parts {
				if strings.Contains(text, part) {
					ts.Fatalf("%q says %q in English", text, part)
				}
			}
			if word := englishWords.FindString(quoted.ReplaceAllString(strings.NewReplacer("<code>", "`", "</code>", "`", "<pre>", "```", "</pre>", "```").Replace(text), "")); word != "" {
				ts.Fatalf("%q says %q, which the catalogue lacks", text, word)
			}
		}
	}
}
