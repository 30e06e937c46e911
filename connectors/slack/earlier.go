package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var _ connectors.Historian = (*Connector)(nil)

// stampForm is the form of a ts.
var stampForm = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{6}$`)

// errLongThread means that a thread has more messages than are read.
var errLongThread = &connectors.RefusedError{Text: "the thread has too many messages within an hour"}

// Said implements connectors.Historian.
//
// conversations.history returns the newest messages first, conversations.replies the oldest
// first, and both may return fewer than asked for
// (docs.slack.dev/reference/methods/conversations.replies and …/conversations.history, read
// 2026-11-28).
func (c *Connector) Said(ctx context.Context, s connectors.Span) (all []claybot.Said, more bool, err error) {
	_, channel, ok := strings.Cut(s.Channel, "/")
	if !ok || channel == "" {
		return nil, false, &connectors.RefusedError{Text: fmt.Sprintf("%.80q is not a Slack channel", s.Channel)}
	}
	if s.Before != "" && !stampForm.MatchString(s.Before) {
		return nil, false, &connectors.RefusedError{Text: fmt.Sprintf("%.40q is not the id of a message of this chat", s.Before)}
	}
	self, err := c.whoami(ctx)
	if err != nil {
		return nil, false, err
	}
	r := spanReader{c, s, url.Values{"channel": {channel}, "limit": {strconv.Itoa(spanItems)}, "include_all_metadata": {"1"}}}
	if s.Before != "" {
		r.args.Set("latest", s.Before)
	}
	var posts []said
	if s.Thread == "" {
		posts, more, err = r.history(ctx)
	} else {
		posts, more, err = r.replies(ctx)
	}
	if err != nil {
		return nil, false, err
	}
	for _, p := range slices.Backward(posts) {
		m, ok := c.heard(ctx, self, channel, p)
		if ok && len(all) == s.Limit {
			more = true
			break
		}
		if ok {
			all = append(all, m)
		}
	}
	slices.Reverse(all)
	return all, more, nil
}

// A spanReader reads the messages of a span.
type spanReader struct {
	chat *Connector
	span connectors.Span
	args url.Values
}

// history returns the newest messages of a channel, the oldest first, those that are none of a
// person or a program included.
func (r spanReader) history(ctx context.Context) (posts []said, more bool, err error) {
	if r.span.After != "" {
		r.args.Set("oldest", r.span.After)
	}
	for range spanPages {
		page, next, err := r.page(ctx, methodHistory)
		if err != nil {
			return nil, false, err
		}
		posts, more = append(posts, page...), next != ""
		if !more || len(posts) >= 2*r.span.Limit {
			break
		}
		r.args.Set("cursor", next)
	}
	slices.Reverse(posts)
	return posts, more, nil
}

// replies returns the messages of a thread, or of a long one its last day or hour.
func (r spanReader) replies(ctx context.Context) (posts []said, more bool, err error) {
	r.args.Set("ts", r.span.Thread)
	end := time.Now()
	if r.span.Before != "" {
		end = at(r.span.Before).Time()
	}
	oldest := r.span.After
	for _, back := range []time.Duration{24 * time.Hour, time.Hour, 0} {
		if oldest != "" {
			r.args.Set("oldest", oldest)
		}
		posts, whole, err := r.thread(ctx)
		if err != nil || whole {
			return posts, oldest != r.span.After, err
		}
		oldest = max(r.span.After, stampOf(end.Add(-back)))
	}
	return nil, false, errLongThread
}

// thread reads the pages of a thread. whole is false if there are more than are read.
func (r spanReader) thread(ctx context.Context) (posts []said, whole bool, err error) {
	defer r.args.Del("cursor")
	for range spanPages {
		page, next, err := r.page(ctx, methodReplies)
		if err != nil {
			return nil, false, err
		}
		if posts = append(posts, page...); next == "" {
			return posts, true, nil
		}
		r.args.Set("cursor", next)
	}
	return posts, false, nil
}

// page reads one page, without what does not belong to the span: Slack may add the first
// message of a thread.
func (r spanReader) page(ctx context.Context, method string) (posts []said, next string, err error) {
	if d := r.chat.penalties.left(method, ""); d > 0 {
		return nil, "", &connectors.RetryError{After: d, Err: fmt.Errorf("%s: slack asked for a pause", method)}
	}
	posts, next, err = r.chat.readPage(ctx, method, r.args)
	if err != nil {
		if d := waitFor(err); d > 0 {
			r.chat.penalties.add(method, "", d)
		}
		return nil, "", r.chat.unread(method, err)
	}
	return slices.DeleteFunc(posts, func(p said) bool {
		return r.span.After != "" && p.TS <= r.span.After || r.span.Before != "" && p.TS >= r.span.Before
	}), next, nil
}

// unread describes the failure of a call that reads messages.
func (c *Connector) unread(method string, err error) error {
	cause := c.refused(method, c.cfg.BotTokenName, err)
	var refusal slackapi.SlackErrorResponse
	switch code, k := judge(err); {
	case code == "missing_scope" && errors.As(err, &refusal):
		return &connectors.RefusedError{Text: noScope(word(refusal.Needed)), Err: cause}
	case k == account || k == route || k == content:
		return &connectors.RefusedError{Text: "Slack does not show the messages of this chat to the app", Err: cause}
	}
	return cause
}

// heard returns a message as an agent may read it; ok is false if it says nothing.
func (c *Connector) heard(ctx context.Context, self identity, channel string, p said) (m claybot.Said, ok bool) {
	switch p.Subtype {
	case "", "file_share", "thread_broadcast", "me_message", "bot_message":
	default: // joins and so on
		return m, false
	}
	m = claybot.Said{ID: p.TS, UserID: p.User, At: at(p.TS), Text: plain(p.Text, self), Passed: len(p.Files) > 0}
	for _, f := range p.Files {
		m.Text = strings.TrimPrefix(m.Text+"\n["+connectors.FileLine(claybot.FileReference{Name: cmp.Or(f.Name, f.Title), Kind: kindOf(f)})+"]", "\n")
	}
	for _, a := range p.Attachments {
		m.Passed = m.Passed || a.Share || a.Unfurl
	}
	switch {
	case strings.TrimSpace(m.Text) == "":
		return m, false
	case p.User == self.User:
		m.Bot, m.Name, m.Outgoing = true, self.Name, p.outgoing()
	case p.BotID != "" || p.User == "" || p.User == slackbot:
		m.Bot, m.UserID, m.Name = true, cmp.Or(p.User, p.BotID), connectors.PersonName(cmp.Or(p.Username, p.BotProfile.Name))
	default:
		d, outsider, known := self.principal(c.cfg.Name, channel, p.User, p.UserTeam, p.SourceTeam, p.Team, self.Team)
		if !known {
			return m, false
		}
		m.UserID, m.Outsider = d.UserID, outsider
		if !outsider {
			who, err := c.member(ctx, p.User, nameTime)
			m.Name, m.Outsider = who.name, who.outsider || err != nil
		}
	}
	return m, true
}

// outgoing returns the id of the outgoing message that a post of the bot is, see outType.
func (p said) outgoing() string {
	var of struct {
		ID string `json:"id"`
	}
	if p.Metadata.Type != outType || connectors.Decode(p.Metadata.Payload, &of) != nil {
		return ""
	}
	return of.ID
}
