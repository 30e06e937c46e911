package configs

import (
	"strings"
	"unicode"

	"github.com/claybot/claybot/lazyregexp"
)

var (
	httpAddress = lazyregexp.New(`https?://[^\s"',\]}]+`)
	hookName    = lazyregexp.New(`(?i)hooks?[0-9a-z]{0,2}$`)
)

// masked returns a text in which addresses end where a token begins: what follows the host or
// the folder of a webhook, or a part of the path that looks like a token. Those who know it
// can send there.
func masked(text string) string {
	return httpAddress.ReplaceAllStringFunc(text, func(address string) string {
		parts := strings.Split(address, "/")
		for i := 3; i < len(parts); i++ { // those before are the scheme and the host
			before := parts[i-1]
			if i == 3 {
				before, _, _ = strings.Cut(before, ":")
				before, _, _ = strings.Cut(before, ".")
			}
			if parts[i] != "" && (hookName.MatchString(before) || tokenPart(parts[i])) {
				return strings.Join(parts[:i], "/") + "/" + Hidden
			}
		}
		return address
	})
}

// setting is a key with its value in a line of a file.
var setting = lazyregexp.New(`("?[A-Za-z0-9_.-]+"?\s*:\s+)("[^"]*"|'[^']*'|[^\s,}\]#{\[]+)`)

// MaskLine returns a line of a file as it can be shown: without what is or looks like a secret.
func MaskLine(line string) string {
	line = setting.ReplaceAllStringFunc(line, func(text string) string {
		m := setting.FindStringSubmatch(text)
		name, value := strings.Trim(m[1], "\": \t"), strings.Trim(m[2], `"'`)
		if guarded(name) && !strings.HasPrefix(value, "env:") && !strings.HasPrefix(value, "file:") {
			return m[1] + Hidden
		}
		return text
	})
	if shapes.MatchString(line) {
		return line[:len(line)-len(strings.TrimLeft(line, " "))] + Hidden
	}
	return masked(line)
}

// tokenPart reports a part of a path with a run of 12 letters and digits, both among them.
func tokenPart(part string) bool {
	for _, run := range strings.FieldsFunc(part, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		if len(run) >= 12 && strings.ContainsFunc(run, unicode.IsLetter) && strings.ContainsFunc(run, unicode.IsDigit) {
			return true
		}
	}
	return false
}
