package slack

import (
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Manifest is the app manifest that users paste into Slack, as YAML. docs/slack.md
// quotes it, and tests give it to the emulator.
//
//go:embed manifest.yaml
var Manifest string

// scopes returns the bot scopes of the manifest.
func scopes() (all []string) {
	_, list, _ := strings.Cut(Manifest, "\n    bot:\n")
	for line := range strings.Lines(list) {
		scope, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		all = append(all, scope)
	}
	return all
}

// lacking returns the scopes of the manifest that an answer of Slack does not list in its
// header x-oauth-scopes. Without the header it returns none, because they are unknown.
func lacking(answer http.Header) (missing []string) {
	granted := answer.Values("X-Oauth-Scopes")
	if len(granted) == 0 {
		return nil
	}
	has := strings.FieldsFunc(strings.Join(granted, ","), func(r rune) bool { return r == ',' || r == ' ' })
	for _, scope := range scopes() {
		if !slices.Contains(has, scope) {
			missing = append(missing, scope)
		}
	}
	return missing
}

// noteScopes remembers for Health which scopes the app lacks, and logs a change.
func (c *Connector) noteScopes(answer http.Header) {
	missing := strings.Join(lacking(answer), ", ")
	if missing == "" {
		c.scopes.Store(nil)
		return
	}
	text := fmt.Sprintf("the Slack app lacks the scopes %s; add them at api.slack.com/apps, OAuth & Permissions, reinstall the app and restart claybot", missing)
	if old := c.scopes.Swap(&text); old == nil || *old != text {
		c.log.Warn("the slack app lacks scopes", "scopes", missing)
	}
}
