package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var _ connectors.Historian = (*Connector)(nil)

// sortMessages puts messages into the order in which they were written.
func sortMessages(all []message) {
	slices.SortFunc(all, func(a, b message) int { return compareIDs(a.ID, b.ID) })
}

// compareIDs orders ids by when they were made.
func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// messagesCall asks for a page of messages of a channel: the newest ones, or those next to a bound, which is
// "&before=" or "&after=" and an id.
func messagesCall(channel string, limit int, bound string) call {
	return channelCall(http.MethodGet, "get messages", channel, fmt.Sprintf("/messages?limit=%d%s", limit, bound), nil)
}

// Said implements connectors.Historian. The endpoint returns the newest messages before one, of
// which it takes at most 100 at a time.
//
// docs.discord.com/developers/resources/message, Get Channel Messages, read 2026-11-28.
func (c *Connector) Said(ctx context.Context, s connectors.Span) (all []claybot.Said, more bool, err error) {
	channel, err := target(claybot.Route{ChannelID: s.Channel, ThreadID: s.Thread})
	if err != nil {
		return nil, false, &connectors.RefusedError{Text: fmt.Sprintf("%.80q is not a Discord channel", s.Channel)}
	}
	if s.Before != "" && !isID(s.Before) || s.After != "" && !isID(s.After) {
		return nil, false, &connectors.RefusedError{Text: fmt.Sprintf("%.40q is not the id of a message of this chat", cmp.Or(s.Before, s.After))}
	}
	before := s.Before
	for range maxPages {
		page, err := c.before(ctx, channel, before)
		if err != nil {
			return nil, false, err
		}
		for _, m := range slices.Backward(page) {
			if s.After != "" && compareIDs(s.After, m.ID) >= 0 {
				slices.Reverse(all)
				return all, false, nil
			}
			said, ok := c.heard(m)
			if ok && len(all) == s.Limit {
				slices.Reverse(all)
				return all, true, nil
			}
			if ok {
				all = append(all, said)
			}
		}
		if more = len(page) == pageItems; !more {
			break
		}
		before = page[0].ID
	}
	slices.Reverse(all)
	return all, more, nil
}

// before reads the page of messages before one, the oldest first.
func (c *Connector) before(ctx context.Context, channel, before string) ([]message, error) {
	if before != "" {
		before = "&before=" + before
	}
	var page []message
	err := c.api.do(ctx, messagesCall(channel, pageItems, before), &page)
	var r *refusal
	if errors.As(err, &r) && r.status != http.StatusUnauthorized {
		return nil, &connectors.RefusedError{Text: "Discord does not show the messages of this chat to the bot", Err: err}
	}
	sortMessages(page)
	return page, err
}

// heard returns a message as an agent may read it; ok is false if it says nothing.
func (c *Connector) heard(m message) (said claybot.Said, ok bool) {
	text, files, forwarded := m.shows()
	said = claybot.Said{ID: m.ID, UserID: m.author(), Name: m.Author.name(""), At: at(m.Timestamp), Passed: forwarded || len(files) > 0, Bot: m.program()}
	lines := []string{connectors.ForwardMark(forwarded), quotable(strings.ToValidUTF8(text, "\uFFFD")), m.other()}
	for _, a := range files {
		lines = append(lines, "["+connectors.FileLine(claybot.FileReference{Name: a.Name, Kind: a.kind()})+"]")
	}
	said.Text = connectors.JoinLines(lines...)
	if m.Author.ID == c.bot {
		said.UserID = ""
	}
	return said, strings.TrimSpace(said.Text) != ""
}
