package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// functions are the functions of templates, besides the built-in ones.
var functions = template.FuncMap{
	"icon":     icon,
	"markdown": markdown,
	"moment":   moment,
	"readable": func(t any) string { return readable(t, "2006-01-02 15:04 MST") },
	"money":    money,
	"cost":     cost,
	"amount":   amount,
	"count":    count,
	"tokens":   tokens,
	"took":     took,
	"excerpt":  func(n int, text any) string { return excerpt(n, fmt.Sprint(text)) },
	"gist":     gist,
	"odd":      func(i int) bool { return i%2 == 1 },
	"pretty":   pretty,
	"exact":    exact,
	"words":    words,
	"tone":     tone,
	"called":   called,
	"why":      why,
	"plural":   plural,
	"dict":     dict,
	"has":      func(all []string, v string) bool { return slices.Contains(all, v) },
	"rowsOf":   func(text string) int { return min(max(strings.Count(text, "\n")+1, 2), 12) },
	"segment":  func(v any) string { return url.PathEscape(fmt.Sprint(v)) },
	"known":    known,
	"clip":     clip,

	"mark": markOf, "problem": problemOf, "bytes": bytesOf,
	"wordsOf": wordsOf, "storyTitle": storyTitle,
	"fileLine": func(f *claybot.FileReference) string { return connectors.FileLine(*f) },
}

// moment formats a claybot.Time or a time.Time as RFC 3339, empty for none.
func moment(t any) string { return readable(t, time.RFC3339Nano) }

// readable formats a time; the page shows it in the reader's time zone.
func readable(t any, form string) string {
	switch t := t.(type) {
	case claybot.Time:
		if t == 0 {
			return ""
		}
		return t.Time().UTC().Format(form)
	case time.Time:
		return t.UTC().Format(form)
	}
	return ""
}

// money formats an amount in millionths of a US dollar.
func money(micro int64) string {
	usd := float64(micro) / 1e6
	switch {
	case micro == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	case usd < 0.01:
		return fmt.Sprintf("$%.4f", usd)
	case usd < 1:
		return fmt.Sprintf("$%.3f", usd)
	}
	return "$" + grouped(micro/1e6) + fmt.Sprintf(".%02d", micro%1e6/1e4)
}

// freeModel is the built-in model, which is free.
const freeModel = "demo"

// cost formats the cost of usage, of a model if known. Tokens without a cost
// have an unknown price, unless the model is free.
func cost(u claybot.Usage, model ...string) string {
	switch {
	case u.CostMicroUSD != 0 && u.Unpriced > 0:
		return money(u.CostMicroUSD) + " + " + unpriced
	case u.CostMicroUSD != 0:
		return money(u.CostMicroUSD)
	case u.Input+u.Output == 0:
		return "–"
	case slices.Contains(model, freeModel):
		return "free"
	}
	return unpriced
}

// count formats a whole number with thousands separators.
func count(n any) string {
	switch v := n.(type) {
	case int:
		return grouped(int64(v))
	case int64:
		return grouped(v)
	}
	return fmt.Sprint(n)
}

func grouped(n int64) string {
	sign, s := "", strconv.FormatInt(n, 10)
	if n < 0 {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// tokens formats a rounded count of tokens.
func tokens(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 1e6:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + "k"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

// took formats a duration in milliseconds.
func took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case ms < 0:
		return "–"
	case ms < 1000:
		return strconv.FormatInt(ms, 10) + " ms"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// excerpt returns the beginning of a text on one line, at most n characters.
func excerpt(n int, text string) string {
	text = strings.Join(strings.Fields(strings.Map(straight, bounded(n, text))), " ")
	seen := 0
	for i := range text {
		if seen++; seen > n {
			return text[:i] + "…"
		}
	}
	return text
}

// bounded truncates a text well after its first n characters.
func bounded(n int, text string) string {
	if limit := 2 * n * utf8.UTFMax; len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// gist returns the beginning of a Markdown text on one line, without markup.
func gist(n int, text string) string {
	return excerpt(n, connectors.Render(bounded(n, text), connectors.Style{}))
}

// pretty indents JSON and returns any other text unchanged.
func pretty(raw string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if !json.Valid([]byte(raw)) || enc.Encode(json.RawMessage(raw)) != nil {
		return raw
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// called returns the display name of the agent of a descriptor.
func called(d claybot.Descriptor) string {
	switch {
	case d.Name != "":
		return d.Name
	case d.Shared():
		d.UserID = ""
		return called(d) + " · everyone"
	case d.Type == claybot.AgentUser && d.ThreadID != "":
		return d.Connector + " · " + d.ChannelID + " · " + d.ThreadID
	case d.Type == claybot.AgentUser && d.ChannelID != d.UserID:
		return d.Connector + " · " + d.ChannelID
	case d.Type == claybot.AgentUser:
		return d.Connector + " · " + d.UserID
	case d.UID != "":
		return string(d.Type) + " " + d.UID
	}
	return string(d.Type)
}

// calledAs is called with the names on the platform, which are unverified.
func calledAs(e storage.IndexEntry) string {
	names := slices.DeleteFunc([]string{e.PersonName, e.PlaceName}, func(s string) bool { return s == "" })
	if len(names) == 0 {
		return called(e.Descriptor)
	}
	return called(e.Descriptor) + " (" + strings.Join(names, ", ") + ")"
}

// why returns the URL of the trace of a message, a run or a delivery.
func why(ref any) string {
	return "/ui/why?" + url.Values{"q": {fmt.Sprint(ref)}}.Encode()
}

// plural formats a count: 1 run, 2 runs.
func plural(n any, one, more string) string {
	if s := count(n); s != "1" {
		return s + " " + more
	}
	return "1 " + one
}

// dict builds the argument of a template from pairs.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict of %d values", len(pairs))
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m, nil
}

// known returns a value, or a dash if it is empty.
func known(s any) string {
	return cmp.Or(fmt.Sprint(s), "–")
}
