package discord

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/texts"
)

// A registration is what Discord answered when the commands were registered. The store keeps it, so
// that every cluster member and each restart knows the ids.
type registration struct {
	Sum string            `json:"sum"` // of what was registered
	IDs map[string]string `json:"ids"` // by name
}

// registered are the ids of the commands. The zero value is ready to use.
type registered struct {
	mu     sync.Mutex
	ids    map[string]string
	looked time.Time // in the store
}

// commandsKey is where the store keeps the registration.
func (c *Connector) commandsKey() string { return "discord/" + c.bot + "/commands" }

// registration reads the stored registration; the zero value if there is none.
func (c *Connector) registration(ctx context.Context) registration {
	r, _ := connectors.ReadMark[registration](ctx, c.cfg.Marks, c.commandsKey()) // after an error, none
	return r
}

// note notes the ids that Discord gave.
func (r *registered) note(ids map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = ids
}

// commandIDs returns the ids of the commands by name; nil while they are unknown. A member that only
// sends looks for them in the store, at most once in lookAgain.
func (c *Connector) commandIDs(ctx context.Context) map[string]string {
	r := &c.menu
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil && time.Since(r.looked) >= lookAgain {
		r.looked = time.Now()
		r.ids = c.registration(ctx).IDs
	}
	return r.ids
}

// A slash is where a text may name a command; a link is left as it is, also its text.
var slash = lazyregexp.New(`\[(?:[^\]\\]|\\.)*\]\(<[^>\n]*>\)|/([a-z]+)`)

// linked returns a text of Discord's Markdown in which the commands can be pressed: a mention of a
// command, </NAME:ID>, in place of each /NAME that stands as a word of its own and not in code.
//
// docs.discord.com/developers/reference, "Message Formatting", read 2026-11-28.
func linked(text string, ids map[string]string) string {
	if len(ids) == 0 || !strings.Contains(text, "/") {
		return text
	}
	return outsideCode(text, func(s string) string {
		var b strings.Builder
		from := 0
		for _, at := range slash.FindAllStringSubmatchIndex(s, -1) {
			if at[2] < 0 {
				continue
			}
			id := ids[s[at[2]:at[3]]]
			if id == "" || !wordStarts(s[:at[0]]) || !wordEnds(s[at[1]:]) {
				continue
			}
			b.WriteString(s[from:at[0]] + "</" + s[at[2]:at[3]] + ":" + id + ">")
			from = at[1]
		}
		return b.String() + s[from:]
	})
}

// wordStarts reports whether a word may begin after a text.
func wordStarts(before string) bool {
	r, size := utf8.DecodeLastRuneInString(before)
	return size == 0 || unicode.IsSpace(r) || strings.ContainsRune(`("“„'*`, r)
}

// wordEnds reports whether a word may end before a text: a path, an address or a longer word goes on.
func wordEnds(after string) bool {
	after = strings.TrimLeft(after, `.,;:!?)"”“'*`)
	r, size := utf8.DecodeRuneInString(after)
	return size == 0 || unicode.IsSpace(r)
}

// commandMention is how a message mentions a command.
var commandMention = lazyregexp.New(`</([a-z0-9_-]{1,32})(?: [a-z0-9_ -]{1,65})?:[0-9]{1,20}>`)

// unlinked returns a text with /NAME in place of each mention of a command.
func unlinked(text string) string {
	if !strings.Contains(text, "</") {
		return text
	}
	return commandMention.ReplaceAllString(text, "/$1")
}

// unlinkedOwn returns a text with /NAME in place of each mention of a command of this bot. The command of
// another bot stays a mention, also if it has the same name.
func (c *Connector) unlinkedOwn(ctx context.Context, text string) string {
	if !strings.Contains(text, "</") {
		return text
	}
	ids := c.commandIDs(ctx)
	return commandMention.ReplaceAllStringFunc(text, func(shown string) string {
		name := commandMention.FindStringSubmatch(shown)[1]
		if id := ids[name]; id == "" || shown != "</"+name+":"+id+">" {
			return shown
		}
		return "/" + name
	})
}

// quotable returns a text that Discord shows as a person reads it: with /NAME in place of each mention of a
// command that is not in code. It is not for what a person sends, which could become a command.
func quotable(text string) string { return outsideCode(text, unlinked) }

// contents is the text of o as it is sent, with commands that can be pressed where they fit.
func (c *Connector) contents(ctx context.Context, o claybot.Outgoing) string {
	text := content(texts.Of(ctx), o)
	if link := linked(text, c.commandIDs(ctx)); connectors.UTF16Len(link) <= maxTextUTF16 {
		return link
	}
	return text
}

// idsOf returns the ids of commands by name.
func idsOf(all []command) map[string]string {
	ids := make(map[string]string)
	for _, x := range all {
		if isID(x.ID) && slices.ContainsFunc(connectors.Commands, func(c connectors.Command) bool { return c.Name == x.Name }) {
			ids[x.Name] = x.ID
		}
	}
	return ids
}
