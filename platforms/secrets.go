package platforms

import (
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// A secretForm is how secrets of one kind look. With a group in Looks, the secret is what
// the first one matches.
type secretForm struct {
	kind  string // with its article, as in a sentence
	hints []string
	looks *lazyregexp.Regexp
	// check, if set, says whether a match is a secret.
	check func(secret string) bool
}

// secretForms are the forms that their issuers made recognizable, and what a text itself
// calls a secret. A form is only looked for in texts that have one of its hints, in lower
// case. Order matters: an earlier form takes the text that a later one would match.
//
// Sources, read 2026-11-26: GitHub, "Secret scanning patterns" (docs.github.com), Slack,
// "Token types" (docs.slack.dev), Telegram, "Bot API" (core.telegram.org/bots/api), Discord, "Reference"
// (docs.discord.com/developers/reference, 2026-11-28), AWS,
// "IAM identifiers" (docs.aws.amazon.com), RFC 7468 (PEM), RFC 7519 (JWT).
var secretForms = []secretForm{
	{"a private key", []string{"private key-----"}, lazyregexp.New(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)`), nil},
	{"a Slack token", []string{"xox", "xapp-"}, lazyregexp.New(`\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}`), hasDigit},
	{"a Telegram bot token", []string{":"}, lazyregexp.New(`\b[0-9]{6,12}:[A-Za-z0-9_-]{30,}`), nil},
	{"a Discord bot token", []string{"."}, lazyregexp.New(`\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}`), hasDigit},
	{"a GitHub token", []string{"gh", "github_pat_"}, lazyregexp.New(`\b(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`), nil},
	{"a GitLab token", []string{"glpat-"}, lazyregexp.New(`\bglpat-[A-Za-z0-9_-]{20,}`), nil},
	{"an AWS access key", []string{"akia", "asia"}, lazyregexp.New(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`), nil},
	{"a Google key", []string{"aiza", "gocspx-", "ya29."}, lazyregexp.New(`\b(?:AIza[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,})`), nil},
	{"a Stripe key", []string{"_live_", "_test_", "whsec_"}, lazyregexp.New(`\b(?:(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,})`), nil},
	{
		"an API key",
		[]string{"sk-", "gsk_", "hf_", "npm_", "pypi-", "sg.", "xai-", "claybot_", "dop_v1_"},
		lazyregexp.New(`\b(?:sk-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|xai-[A-Za-z0-9]{40,}|claybot_[A-Za-z0-9_-]{30,}|dop_v1_[a-f0-9]{40,})`), hasDigit,
	},
	{"a signed token", []string{"eyj"}, lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), nil},
	{"a password", []string{"://"}, lazyregexp.New(`\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/:@]{0,200}:([^\s/@]{1,500})@`), notMasked},
	{"an access token", []string{"bearer"}, lazyregexp.New(`\b[Bb]earer\s+([A-Za-z0-9._~+/-]{16,}=*)`), hasDigit},
	{
		"a password or key",
		[]string{"key", "secret", "token", "passw", "pwd"},
		lazyregexp.New(`(?i)\b(?:[a-z0-9]+[_-])*(?:api[_-]?key|access[_-]?key|secret[_-]?key|secret|token|password|passwd|pwd)["']?\s{0,3}[:=]\s{0,3}["']?([^\s"',;]{8,500})`), mixed,
	},
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// notMasked reports whether s is no replacement of an earlier form.
func notMasked(s string) bool { return !strings.HasPrefix(s, secretMark) }

// mixed reports whether s has letters and digits, as words of a language have not.
func mixed(s string) bool {
	return notMasked(s) && hasDigit(s) && strings.ContainsFunc(s, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
}

// secretMark begins what stands in place of a secret.
const secretMark = "[removed: "

// MaskSecrets replaces each part of a text that has the form of a token, a key or a
// password with a mark that says what was there, such as [removed: a Slack token]. It also
// returns the kinds it found, each once, in the words of the marks. A masked text has
// nothing left to mask.
//
// Forms are all it knows: it finds nothing that looks like other words, and it does not
// know whether a secret is valid.
func MaskSecrets(text string) (masked string, kinds []string) {
	lower := strings.ToLower(text)
	for _, f := range secretForms {
		if !slices.ContainsFunc(f.hints, func(h string) bool { return strings.Contains(lower, h) }) {
			continue
		}
		found := f.looks.FindAllStringSubmatchIndex(text, -1)
		var b strings.Builder
		rest := 0
		for _, at := range found {
			begin, end := at[0], at[1]
			if len(at) > 2 {
				begin, end = at[2], at[3]
			}
			if f.check != nil && !f.check(text[begin:end]) {
				continue
			}
			b.WriteString(text[rest:begin] + secretMark + f.kind + "]")
			rest = end
			if !slices.Contains(kinds, f.kind) {
				kinds = append(kinds, f.kind)
			}
		}
		if rest > 0 {
			text = b.String() + text[rest:]
		}
	}
	return text, kinds
}
