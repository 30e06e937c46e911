package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A search describes the search for the post of one Outgoing.
type search struct {
	claybot.Outgoing
	self           identity
	channel        string
	oldest, latest string
}

// Find looks once for the post of an ambiguous attempt in the history of its
// channel or thread. It first waits until the history should show the post. A
// PermanentError means that the app cannot look up posts.
func (c *Connector) Find(ctx context.Context, o claybot.Outgoing) (receipt string, found bool, err error) {
	if o.Edit != "" {
		return "", false, nil // repeating an edit is harmless
	}
	if c.answersSlash(o) != "" {
		return "", false, &connectors.PermanentError{Err: errors.New("look up: no history shows an ephemeral message")}
	}
	_, channel, ok := strings.Cut(o.Route.ChannelID, "/")
	if !ok || channel == "" {
		return "", false, &connectors.PermanentError{DeadRoute: true, Err: fmt.Errorf("look up: no slack channel: %q", o.Route.ChannelID)}
	}
	select {
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
	case <-time.After(min(time.Until(o.Tried.Time().Add(c.cfg.Settle)), c.cfg.Settle)): // the clock may have been set back
	}
	if o.File != nil {
		return c.findFile(ctx, o, channel)
	}
	self, err := c.whoami(ctx)
	if err != nil {
		return "", false, err
	}
	s := search{Outgoing: o, self: self, channel: channel}
	receipt, found, err = c.look(ctx, s.within(-nearBack, nearAhead))
	if err != nil || found {
		return receipt, found, err
	}
	receipt, found, err = c.look(ctx, s.within(-wideBack, wideAhead))
	if errors.Is(err, errTooMany) {
		return "", false, nil // not near the attempt; the wider search allows for clock skew
	}
	return receipt, found, err
}

// errTooMany means that the channel has more messages around the attempt than
// are searched.
var errTooMany = &connectors.PermanentError{Err: errors.New("too many messages around the attempt to look it up")}

// within limits the search to a period around the attempt.
func (s search) within(from, to time.Duration) search {
	at := func(d time.Duration) string { return fmt.Sprintf("%d.000000", s.Tried.Time().Add(d).Unix()) }
	s.oldest, s.latest = at(from), at(to)
	return s
}

// look searches the pages of the history.
func (c *Connector) look(ctx context.Context, s search) (string, bool, error) {
	method := methodHistory
	if s.Route.ThreadID != "" {
		method = methodReplies
	}
	cursor := ""
	for range historyPages {
		if d := c.penalties.left(method, s.channel); d > 0 {
			return "", false, &connectors.RetryError{After: d, Err: fmt.Errorf("%s: slack asked for a pause", method)}
		}
		posts, next, err := c.page(ctx, s, cursor)
		if err != nil {
			return "", false, c.unreadable(method, s, err)
		}
		for _, p := range posts {
			if s.matches(p) {
				return p.Timestamp, true, nil
			}
		}
		if next == "" {
			return "", false, nil
		}
		cursor = next
	}
	return "", false, errTooMany
}

// page reads one page of the channel or the thread.
func (c *Connector) page(ctx context.Context, s search, cursor string) ([]slackapi.Message, string, error) {
	if s.Route.ThreadID != "" {
		posts, _, next, err := c.api.GetConversationRepliesContext(ctx, &slackapi.GetConversationRepliesParameters{
			ChannelID: s.channel, Timestamp: s.Route.ThreadID, Cursor: cursor, Oldest: s.oldest, Latest: s.latest,
			Inclusive: true, Limit: historyItems, IncludeAllMetadata: true,
		})
		return posts, next, err
	}
	r, err := c.api.GetConversationHistoryContext(ctx, &slackapi.GetConversationHistoryParameters{
		ChannelID: s.channel, Cursor: cursor, Oldest: s.oldest, Latest: s.latest,
		Inclusive: true, Limit: historyItems, IncludeAllMetadata: true,
	})
	if err != nil {
		return nil, "", err
	}
	return r.Messages, r.ResponseMetaData.NextCursor, nil
}

// unreadable classifies the error of a page: permanent or worth a retry.
func (c *Connector) unreadable(method string, s search, err error) error {
	if d := waitFor(err); d > 0 {
		c.penalties.add(method, s.channel, d)
	}
	if _, k := judge(err); k == route {
		return &connectors.PermanentError{DeadRoute: true, Err: c.refused(method, c.cfg.BotTokenName, err)}
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) { // the library cannot decode another message of the page
		return &connectors.PermanentError{Err: fmt.Errorf("%s: cannot look up: %w", method, kind)}
	}
	return c.refused(method, c.cfg.BotTokenName, err)
}

// matches reports whether p is the bot's post of the Outgoing. A stream that was not completed bears no
// metadata and is no post of any: by its text it may be the beginning of another answer, which a
// member of the cluster continues.
func (s search) matches(p slackapi.Message) bool {
	if p.Metadata.EventType != outType || p.Metadata.EventPayload["id"] != s.ID {
		return false
	}
	if part, ok := p.Metadata.EventPayload["part"].(float64); !ok || int(part) != s.Part {
		return false
	}
	return p.User == s.self.User || s.self.Bot != "" && p.BotID == s.self.Bot
}
