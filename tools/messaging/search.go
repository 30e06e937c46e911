package messaging

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/tools"
)

// Limits of a search of histories.
const (
	maxQuery    = 500 // bytes
	maxPage     = 50
	pageHits    = 20
	snippetLead = 100 // bytes before the first word that fits
	snippetSize = 300
)

func searchHistory(d tools.Directory) tools.Tool {
	type input struct {
		Query string `json:"query" jsonschema:"words; entries that have all of them are found, whatever their capitals"`
		Page  int    `json:"page,omitempty" jsonschema:"1 is the newest 20 entries, and when absent"`
	}
	s := spec("search_history", "Searches what was said in earlier conversations of your person, also before /new and in what was summarized. Shows date, place and the words around.", tools.ReadOnly, scopeMemory)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		query, err := tools.Required("query", in.Query, maxQuery)
		if err != nil {
			return tools.Result{}, err
		}
		page := max(in.Page, 1)
		if in.Page < 0 || page > maxPage {
			return tools.Result{}, fmt.Errorf("field page: %d, want 1 to %d", in.Page, maxPage)
		}
		words := strings.Fields(strings.ToLower(query))
		found, err := d.SearchHistory(ctx, env, words, (page-1)*pageHits, pageHits)
		if err != nil {
			return tools.Result{}, err
		}
		var lines []string
		for _, f := range found.Found {
			lines = append(lines, findingLine(f, words))
		}
		if lines == nil {
			lines = []string{"(nothing found)"}
		}
		if found.More && page < maxPage {
			lines = append(lines, fmt.Sprintf("[more on page %d]", page+1))
		}
		if found.Partly {
			lines = append(lines, "[not everything was searched, as there is too much of it]")
		}
		tainted := slices.ContainsFunc(found.Found, func(f tools.Finding) bool { return f.Record.Tainted })
		return tools.Result{Text: strings.Join(lines, "\n"), Untrusted: tainted}, nil
	})
}

func findingLine(f tools.Finding, words []string) string {
	where := f.Agent.Place
	switch {
	case f.Agent.Self:
		where = "here"
	case where == "":
		where = strings.TrimSpace(f.Agent.Type + " " + f.Agent.Name)
	}
	r := f.Record
	r.Text = snippet(r.Text, words)
	return strings.Replace(recordLine(r), " ", " ("+tools.Short(where, maxName)+") ", 1)
}

// snippet is the part of a text around the first place at which one of the words stands.
func snippet(text string, words []string) string {
	at := len(text)
	lower := strings.ToLower(text)
	for _, w := range words {
		if i := strings.Index(lower, w); i >= 0 {
			at = min(at, i)
		}
	}
	if at == len(text) || len(lower) != len(text) { // capitals of another length: the places differ
		at = 0
	}
	from, to := max(at-snippetLead, 0), min(at-snippetLead+snippetSize, len(text))
	to = max(to, min(snippetSize, len(text)))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	part := text[from:to]
	if from > 0 {
		part = "…" + part
	}
	if to < len(text) {
		part += "…"
	}
	return part
}
