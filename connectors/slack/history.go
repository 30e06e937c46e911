package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// stampOf formats t as a Slack message ts.
func stampOf(t time.Time) string {
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000)
}

// readPage reads one page of conversations.history or conversations.replies. It
// decodes each message separately, so a message that claybot cannot decode does
// not hide the others, as it would with the library.
func (c *Connector) readPage(ctx context.Context, method string, args url.Values) (posts []said, next string, err error) {
	var page struct {
		pageInfo
		Messages []json.RawMessage `json:"messages"`
	}
	if err := c.readAnswer(ctx, method, args, &page, &page.pageInfo); err != nil {
		return nil, "", err
	}
	for _, raw := range page.Messages {
		var p said
		if connectors.Decode(raw, &p) == nil && p.TS != "" {
			posts = append(posts, p)
		}
	}
	return posts, page.Metadata.Next, nil
}

// A pageInfo has the fields that all responses of reading methods share.
type pageInfo struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Needed   string `json:"needed"`
	Metadata struct {
		Next string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// readAnswer calls a reading method and decodes its response into page, which contains v.
// Its errors are those of the library.
func (c *Connector) readAnswer(ctx context.Context, method string, args url.Values, page any, v *pageInfo) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.APIURL+method, strings.NewReader(args.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.calls.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // it was only read
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // the caller has made it a number
		return &slackapi.RateLimitedError{RetryAfter: time.Duration(seconds) * time.Second}
	case resp.StatusCode != http.StatusOK:
		return slackapi.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
	}
	if err := json.NewDecoder(resp.Body).Decode(page); err != nil {
		return errors.New("the answer cannot be read")
	}
	if !v.OK {
		return slackapi.SlackErrorResponse{Err: v.Error, Needed: v.Needed}
	}
	return nil
}

// live returns the event that Slack would have sent for a message of a
// channel's history.
func (p said) live(self identity, channel string) event {
	p.Type, p.Channel, p.ChannelType = "message", channel, "channel"
	if strings.HasPrefix(channel, "D") {
		p.ChannelType = "im"
	}
	return event{Team: self.Team, Event: p}
}

// sentAt returns when the message was written.
func (p said) sentAt() claybot.Time { return at(p.TS) }
