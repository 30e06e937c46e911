package explore

import (
	"net/url"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// A request is what a message asks for.
type request struct{ url, goal string }

// maxGoal is the most bytes of a goal.
const maxGoal = 1000

// An address in a text is one of any scheme, not only of the web: what is named is
// opened or refused, never passed over for the one in the settings.
var address = lazyregexp.New(`(?i)(?:\b|_)([a-z0-9][a-z0-9+-]*://[^\s<>"'` + "`" + `]*|(?:` +
	`https?|ftp|file|filesystem|blob|data|javascript|vbscript|about|chrome|devtools|view-source` +
	`):[^\s<>"'` + "`" + `.,;:!?)\]}*_][^\s<>"'` + "`" + `]*)`)

// marks may follow an address in a sentence, and are no part of it.
const marks = ".,;:!?)]}*_"

// readRequest reads from the messages and the settings what is to be explored. A
// refusal is a sentence for the reader.
func readRequest(v texts.Voice, t *runs.Turn, set Settings, hosts devices.Hosts) (r request, refusal string) {
	var said []string
	for _, m := range t.Messages {
		if m.Type == claybot.MessageUser || m.Type == claybot.MessageSystem {
			said = append(said, m.Text)
		}
	}
	r.url, r.goal = asked(strings.Join(said, "\n"))
	if r.url == "" {
		r.url = set.URL
	}
	if r.goal == "" {
		r.goal = devices.Line(set.Goal, maxGoal)
	}
	switch u, err := url.Parse(r.url); {
	case r.url == "":
		return r, v.In(texts.ExploreWhat)
	case err == nil && u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https":
		return request{goal: r.goal}, v.Say(texts.ExploreScheme, devices.Line(u.Scheme, 40))
	case err != nil || u.Hostname() == "" || u.Scheme == "":
		return request{goal: r.goal}, v.In(texts.ExploreAddress)
	case u.User != nil:
		return request{goal: r.goal}, v.In(texts.ExplorePassword)
	case hosts.Len() == 0:
		return r, v.In(texts.ExploreNoHosts)
	case !hosts.Allows(u):
		return r, v.Say(texts.ExploreHost, devices.Line(u.Host, 120), hosts)
	}
	return r, ""
}

// asked takes the first address out of a text, of whatever scheme. What is left is
// the goal.
func asked(text string) (target, goal string) {
	if at := address.FindStringSubmatchIndex(text); at != nil {
		target = strings.TrimRight(text[at[2]:at[3]], marks)
		text = text[:at[2]] + " " + text[at[2]+len(target):]
	}
	goal = devices.Line(text, maxGoal)
	if !strings.ContainsFunc(goal, func(r rune) bool {
		return r > '~' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}) {
		goal = "" // marks that stood around the address
	}
	if strings.EqualFold(strings.Trim(goal, " .!,:"), "explore") {
		goal = ""
	}
	return target, goal
}
