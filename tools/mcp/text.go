package mcp

import (
	"regexp"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot/lazyregexp"
)

// plain makes the words of a server fit to be shown: valid text without control,
// direction or other unseen characters, at most most bytes. Newlines and tabs
// stay.
func plain(s string, most int) string {
	const mark = " […]"
	whole := len(s)
	if whole > 4*most+utf8.UTFMax {
		s = s[:4*most+utf8.UTFMax] // unseen characters may take the place of seen ones
	}
	s = escapes().ReplaceAllString(s, "")
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == utf8.RuneError {
			return r
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector, unicode.Zl, unicode.Zp) || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= most {
		return s
	}
	cut := max(most-len(mark), 0)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// escapes are sequences that a terminal obeys.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]{0,1000}(\x07|\x1b\\)|[ -/]*[0-~])`)
})

// minSecret is the shortest value that is taken for a secret: shorter ones, such
// as 1 or true, would be found everywhere.
const minSecret = 6

// tokenForm are texts that look like secrets, whosever they are.
var tokenForm = lazyregexp.New(`(?i)\b(sk-[a-z0-9_-]{8,}|xox[a-z]-[a-z0-9-]{8,}|xapp-[a-z0-9-]{8,}|gh[a-z]_[a-z0-9]{20,}|github_pat_[a-z0-9_]{20,}|eyJ[a-z0-9_-]{10,}\.[a-z0-9_-]{5,}\.[a-z0-9_-]*|AKIA[0-9A-Z]{12,}|\d{6,}:[a-z0-9_-]{30,})|\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}|((?:api[_-]?key|secret|token|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;]{6,}`)

// A redactor takes secrets out of text.
type redactor struct{ words *strings.Replacer }

func newRedactor(secrets []string) redactor {
	// Longer ones first: a secret may be a part of another one.
	list := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if len(s) >= minSecret {
			list = append(list, s)
		}
	}
	sort.Slice(list, func(i, j int) bool { return len(list[i]) > len(list[j]) })
	pairs := make([]string, 0, 2*len(list))
	for _, s := range list {
		pairs = append(pairs, s, "[redacted]")
	}
	return redactor{strings.NewReplacer(pairs...)}
}

func (r redactor) clean(s string) string {
	return tokenForm.ReplaceAllString(r.words.Replace(s), "${3}[redacted]")
}

// known is s without the secrets of the configuration. What merely looks like
// one stays: it may be what was asked for.
func (r redactor) known(s string) string { return r.words.Replace(s) }

// address is one in a text: its scheme, an account, its host, and what follows, which may be a secret.
var address = lazyregexp.New(`(?i)\b(https?://)([^\s/?#"'<>@]*@)?([^\s/?#"'<>@]*)([/?#][^\s"'<>]*)?`)

// line is s without secrets as one short line, for status and logs. Of addresses, it has the scheme and the host.
func (r redactor) line(s string) string {
	return strings.Join(strings.Fields(plain(r.clean(address.ReplaceAllString(s, "${1}${3}")), 500)), " ")
}
