package slack

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A directMessage is a conversation of the bot with one person.
type directMessage struct {
	ID      string `json:"id"`
	Created int64  `json:"created"` // Unix seconds
	User    string `json:"user"`
	Gone    bool   `json:"is_user_deleted"`
}

// others adds to h the direct messages without a recent message known to claybot, which
// include those of new users. It returns their channels, newest first, and records in h
// what it could not list.
func (b *backfill) others(ctx context.Context, h *hole) (channels []string) {
	if b.chat.cfg.NoBackfill {
		h.Unlisted = errOff.Error()
		return nil
	}
	listed, err := b.list(ctx)
	if err != nil {
		h.Unlisted = err.Error()
		b.log.Warn("failed to list direct messages after a connection gap", "err", err)
	}
	slices.SortStableFunc(listed, func(x, y directMessage) int { return cmp.Compare(y.Created, x.Created) })
	for _, d := range listed {
		if _, known := h.Left[d.ID]; known || d.Gone || d.ID == "" || d.User == slackbot {
			continue
		}
		if len(channels) == maxUnknown {
			h.Unread++
			continue
		}
		h.Left[d.ID] = owed{From: h.From, New: true}
		channels = append(channels, d.ID)
	}
	return channels
}

// Why direct messages of new users may be missing.
var (
	errSlowList = errors.New("the list did not come in time")
	errLongList = errors.New("there are more than are listed")
)

// list lists the bot's direct messages. Live messages wait for it, so it takes
// at most listTime. With an error it returns what it has listed so far.
func (b *backfill) list(ctx context.Context) (all []directMessage, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, errSlowList)
	defer cancel()
	args := url.Values{"types": {"im"}, "limit": {strconv.Itoa(listItems)}}
	for tries, pages := 0, 0; pages < listPages; {
		if !connectors.Sleep(ctx, b.chat.penalties.left(methodList, "")) {
			return all, context.Cause(ctx)
		}
		var page struct {
			pageInfo
			Channels []directMessage `json:"channels"`
		}
		err := b.chat.readAnswer(ctx, methodList, args, &page, &page.pageInfo)
		switch wait := waitFor(err); {
		case err == nil:
			tries, pages, all = 0, pages+1, append(all, page.Channels...)
			if page.Metadata.Next == "" {
				return all, nil
			}
			args.Set("cursor", page.Metadata.Next)
		case wait > 0:
			b.chat.penalties.add(methodList, "", wait)
		default:
			tries++
			if final := b.unreadable(methodList, err, tries >= backfillTries); final != nil {
				return all, final
			}
			if !connectors.Sleep(ctx, time.Second<<tries) {
				return all, context.Cause(ctx)
			}
		}
	}
	return all, errLongList
}
