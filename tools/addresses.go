package tools

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/egress"
)

// wrote reports whether a person wrote an address, as exactly the one page that it is:
// the host, the path and the query. What they quoted, sent as a file or passed on does
// not count, nor does the host of a mail address. Without a scheme, http and https are
// meant; http means https as well.
func wrote(history []claybot.Record, address string) bool {
	want, ok := pageOf(address)
	if !ok {
		return false
	}
	return slices.ContainsFunc(claybot.Restored(history), func(r claybot.Record) bool {
		return r.Type == claybot.RecordUser && !r.Tainted && slices.ContainsFunc(written(r.Text), want.is)
	})
}

// A page is an address in the form in which it is compared. An empty scheme stands for
// both.
type page struct{ scheme, host, rest string }

// is reports whether p is what a person meant with an address that they wrote.
func (p page) is(meant page) bool {
	scheme := meant.scheme == "" || meant.scheme == p.scheme || meant.scheme == "http" && p.scheme == "https"
	return scheme && p.host == meant.host && p.rest == meant.rest
}

func pageOf(address string) (page, bool) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return page{}, false
	}
	host, err := egress.HostOf(address)
	if err != nil {
		return page{}, false
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	return page{u.Scheme, host, path}, true
}

// written returns the addresses in a text.
func written(text string) (pages []page) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("<>\"`|\\", r)
	}) {
		if i := max(strings.LastIndex(strings.ToLower(word), "https://"), strings.LastIndex(strings.ToLower(word), "http://")); i >= 0 {
			if p, ok := pageOf(trimmed(word[i:])); ok {
				pages = append(pages, p)
			}
			continue
		}
		word = trimmed(strings.TrimLeft(word, "([{'*_"))
		host, _, _ := strings.Cut(word, "/")
		if !strings.Contains(host, ".") || strings.ContainsAny(host, "@:?#") {
			continue
		}
		if p, ok := pageOf("https://" + word); ok {
			p.scheme = ""
			pages = append(pages, p)
		}
	}
	return pages
}

// trimmed is a word without the marks of the sentence around it. A closing bracket stays
// if the word has its opening one.
func trimmed(word string) string {
	for word != "" {
		last := word[len(word)-1]
		open := strings.IndexByte(")]}", last)
		switch {
		case strings.IndexByte(".,;:!?'*_", last) >= 0:
		case open >= 0 && strings.Count(word, "([{"[open:open+1]) < strings.Count(word, string(last)):
		default:
			return word
		}
		word = word[:len(word)-1]
	}
	return word
}
