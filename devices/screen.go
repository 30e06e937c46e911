package devices

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounded is a screen within the limits: what is too long is cut, what is not
// UTF-8 or invisible is left out, and of actions with one ID the first stays.
func Bounded(s Screen) Screen {
	s.Title, s.Text, s.URL = Line(s.Title, MaxLabel), clean(s.Text, MaxText, true), clean(s.URL, 2048, false)
	if len(s.PNG) > MaxPNG {
		s.PNG = nil
	}
	seen := make(map[string]bool)
	var kept []Action
	for _, a := range s.Actions {
		if a.ID == "" || seen[a.ID] || len(kept) == MaxActions {
			continue
		}
		seen[a.ID] = true
		a.Label, a.Target = Line(a.Label, MaxLabel), clean(a.Target, 512, false)
		a.Options = slices.Clone(a.Options[:min(len(a.Options), 20)])
		for i := range a.Options {
			a.Options[i] = Line(a.Options[i], MaxLabel)
		}
		kept = append(kept, a)
	}
	s.Actions = kept
	var faults []string
	for _, f := range s.Faults {
		if f = Line(f, MaxFault); f != "" && !slices.Contains(faults, f) && len(faults) < MaxFaults {
			faults = append(faults, f)
		}
	}
	s.Faults = faults
	return s
}

// Line is a text on one line of at most limit bytes.
func Line(s string, limit int) string {
	return clean(strings.Join(strings.Fields(s), " "), limit, false)
}

// Plainly is a text of several lines, of at most limit bytes, without what is not
// to be seen.
func Plainly(s string, limit int) string { return clean(s, limit, true) }

// clean leaves out of a text what is not to be seen, and cuts it at the border
// of a rune to at most limit bytes.
func clean(s string, limit int, lines bool) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	end := max(limit-len(mark), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// Plain is an address without what may be secret: name, password, query and
// fragment.
func Plain(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return u.String()
}
