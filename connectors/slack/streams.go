package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/texts"
)

// A growing answer in a thread is a stream of Slack: chat.startStream posts its first text,
// chat.appendStream adds to it, chat.stopStream completes it. Where Slack refuses a stream, or the
// text does not continue what is there, the answer grows by edits. What a process knows of its
// streams is lost with it: the next one learns from Slack's refusal of an edit that a message is
// one, and stops it.
//
// Shapes: docs.slack.dev/reference/methods/chat.startStream, …appendStream and …stopStream, and
// docs.slack.dev/apis/web-api/rate-limits, read 2026-11-28: a stream is a reply in a thread, names
// its reader outside of direct chats, takes 12,000 characters in each call, and ends by itself
// after some minutes. A start carries no metadata. The three methods have no unfurl_links and
// unfurl_media, without which Slack may crawl links (…/messaging/unfurling-links-in-messages, read
// 2026-11-28): a stream carries no link, and a text with a link grows by edits. Its blocks stand below
// its text, so a text with a table is edited once its stream has ended.

// streams are the open streams of this process, and what Slack lets it do with them.
type streams struct {
	appends *connectors.Budget

	mu      sync.Mutex
	open    map[string]*stream // by channel/ts
	starts  []time.Time        // of the last minute
	stops   []time.Time
	refused time.Time // Slack refused a stream; none begins for streamsAgain
}

// A stream is a message that grows.
type stream struct {
	mu     sync.Mutex // held while its message is changed
	text   string     // that was sent
	unsure bool       // a call got no answer: it may have more text, or be complete
	ended  bool       // a person stopped it, or Slack did
	post   post
	began  time.Time

	touched time.Time // guarded by streams.mu
}

func newStreams() *streams {
	return &streams{appends: connectors.NewBudget(appendsPerMinute, time.Minute), open: make(map[string]*stream)}
}

// begin takes the right to start a stream: one to start it, and one to stop it later. false: it
// grows by edits.
func (s *streams) begin(members int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.starts, s.stops = recent(s.starts, now), recent(s.stops, now)
	limit := max(1, streamsPerMinute/members)
	if now.Sub(s.refused) < streamsAgain && !s.refused.IsZero() || len(s.starts) >= limit || len(s.open)+len(s.stops) >= limit {
		return false
	}
	s.starts = append(s.starts, now)
	return true
}

func recent(calls []time.Time, now time.Time) []time.Time {
	for len(calls) > 0 && now.Sub(calls[0]) >= time.Minute {
		calls = calls[1:]
	}
	return calls
}

func (s *streams) put(key string, x *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.began = time.Now()
	x.touched = x.began
	s.open[key] = x
}

// get returns an open stream, nil for none.
func (s *streams) get(key string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.open[key]
	if x != nil {
		x.touched = time.Now()
	}
	return x
}

// drop forgets a stream that is complete, or counts as edited from now on.
func (s *streams) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, key)
	s.appends.Ended(key)
}

// stopped counts a call of chat.stopStream.
func (s *streams) stopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, time.Now())
}

// idle returns the streams to which nothing was added for streamIdle.
func (s *streams) idle() (all map[string]*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = make(map[string]*stream)
	for key, x := range s.open {
		if time.Since(x.touched) >= streamIdle {
			all[key] = x
		}
	}
	return all
}

// rest returns what of the whole text a stream still needs. ok is false if the text does not
// continue the stream.
func (x *stream) rest(whole string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(whole, x.text)
	return rest, ok && !x.unsure && !x.ended
}

// neutral makes Markdown harmless for Slack: a text of a model mentions no person by <@…> or
// <!channel>.
func neutral(md string) string {
	return strings.NewReplacer("<@", "<\u200b@", "<!", "<\u200b!", "<#", "<\u200b#").Replace(md)
}

// links matches what Slack may take for a link that takes data elsewhere: a URL, a link of Markdown,
// a host with a path, and a host of three names. config.yaml is none.
var links = lazyregexp.New(`(?i)://|\]\(|\bwww\.|[\pL\pN_-]\.\pL{2,}(:\d+)?[/?#]|[\pL\pN_-]\.[\pL\pN_-]+\.\pL{2,}`)

// unfinished is the text of a draft without the sign that more is to come.
func unfinished(text string) string { return neutral(strings.TrimSuffix(text, " …")) }

// startStream starts a stream for the first text of an answer. tried is false if the text is to be
// posted instead.
func (c *Connector) startStream(ctx context.Context, p post) (ts string, tried bool, err error) {
	if !p.Progress || p.Route.ThreadID == "" || links.MatchString(p.Text) || c.cfg.Mixed != nil && c.cfg.Mixed() ||
		c.penalties.left(methodStart, "") > 0 || c.penalties.left(p.method, p.channel) > 0 {
		return "", false, nil
	}
	text := unfinished(p.Text)
	options := []slackapi.MsgOption{slackapi.MsgOptionTS(p.Route.ThreadID), slackapi.MsgOptionMarkdownText(text)}
	if !strings.HasPrefix(p.channel, "D") {
		self, err := c.whoami(ctx)
		user, team := self.local(p.Route.UserID)
		if err != nil || user == "" || user == claybot.Everyone {
			return "", false, nil
		}
		options = append(options, slackapi.MsgOptionRecipientUserID(user), slackapi.MsgOptionRecipientTeamID(team))
	}
	if !c.streams.begin(connectors.Members(c.cfg.Nodes)) {
		return "", false, nil
	}
	calling, left := traced(ctx)
	_, ts, err = c.api.StartStreamContext(calling, p.channel, options...)
	if err == nil && ts == "" {
		err = errors.New("the answer names no message")
	}
	if err == nil {
		c.streams.put(p.channel+"/"+ts, &stream{text: text, post: p})
		return ts, true, nil
	}
	p.method = methodStart
	switch code, k := judge(err); {
	case waitFor(err) > 0:
		c.penalties.add(methodStart, "", waitFor(err))
	case code == "" || k == server:
		return "", true, c.outcome(p, left(), err)
	case k == other || k == account:
		c.log.Info("slack refuses streams; answers grow by edits", "channel", p.channel, "err", c.refused(methodStart, c.cfg.BotTokenName, err), "again", streamsAgain)
		c.streams.mu.Lock()
		c.streams.refused = time.Now()
		c.streams.mu.Unlock()
	}
	return "", false, nil
}

// continueStream shows a text of p, whose message is an open stream. done is false if the message
// is to be edited, which is possible then.
func (c *Connector) continueStream(ctx context.Context, p post, x *stream) (done bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := p.channel + "/" + p.Edit
	if p.Progress {
		whole := unfinished(p.Text)
		switch rest, ok := x.rest(whole); {
		case x.ended:
			return true, nil // its reader has stopped it: only the whole text is still shown
		case !ok || links.MatchString(whole):
			return false, unlessNoStream(c.stopStream(ctx, p, x, "", nil))
		case rest == "":
			return true, nil
		default:
			return c.appendStream(ctx, p, x, rest)
		}
	}
	rest, ok := x.rest(neutral(p.Text))
	if !ok || p.Resent || links.MatchString(p.Text) || len(connectors.OutlineOf(p.Text).Tables) > 0 {
		if x.ended {
			c.streams.drop(key)
			return false, nil
		}
		return false, unlessNoStream(c.stopStream(ctx, p, x, "", nil))
	}
	err = c.stopStream(ctx, p, x, rest, c.controls(texts.Of(ctx), p.Outgoing))
	var retry *connectors.RetryError
	if errors.As(err, &retry) && rest != "" && c.streams.appends.Spend(key) == 0 {
		_, _ = c.appendStream(ctx, p, x, rest) // at least the text is complete; a failure is one of the stop, too
	}
	return !errors.Is(err, errNoStream), unlessNoStream(err)
}

// errNoStream means that a message is no stream any more: an edit completes it.
var errNoStream = errors.New("the message does not grow any more")

func unlessNoStream(err error) error {
	if errors.Is(err, errNoStream) {
		return nil
	}
	return err
}

// appendStream adds to a stream.
func (c *Connector) appendStream(ctx context.Context, p post, x *stream, rest string) (done bool, err error) {
	key := p.channel + "/" + p.Edit
	if p.Progress {
		if d := c.streams.appends.Progress(key, connectors.Members(c.cfg.Nodes)); d > 0 {
			return true, &connectors.RetryError{After: d, Err: fmt.Errorf("%s: slack allows no more calls now", methodAppend)}
		}
	}
	_, _, err = c.api.AppendStreamContext(ctx, p.channel, p.Edit, slackapi.MsgOptionMarkdownText(rest))
	if err == nil {
		x.text += rest
		return true, nil
	}
	code, k := judge(err)
	switch wait := waitFor(err); {
	case wait > 0:
		c.streams.appends.Refused(wait)
		return true, &connectors.RetryError{After: wait, Err: fmt.Errorf("%s: too many calls", methodAppend)}
	case code == "stopped_by_user":
		x.ended = true
		c.halted(p)
		return true, nil
	case code == "message_not_in_streaming_state":
		c.streams.drop(key)
		return false, nil
	case code != "" && k != server:
		return false, unlessNoStream(c.stopStream(ctx, p, x, "", nil))
	}
	x.unsure = true
	return true, c.refused(methodAppend, c.cfg.BotTokenName, err)
}

// halted notes that the reader of a stream has stopped it in Slack, which stops its run.
func (c *Connector) halted(p post) {
	_, own := c.local(p.Route.UserID)
	select {
	case c.halts <- connectors.Reaction{
		Connector: c.cfg.Name, ChannelID: p.Route.ChannelID, UserID: p.Route.UserID, Outsider: !own,
		Group: p.Route.Group, Message: p.Edit, Stop: true, At: claybot.Now(),
	}:
	default: // the connector does not receive: the run goes on, and its whole text is shown
	}
}

// passHalts passes on what halted has noted, until ctx ends.
func (c *Connector) passHalts(ctx context.Context, r *receiver) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-c.halts:
			if r.reacts == nil {
				continue
			}
			if _, err := r.reacts.Reacted(ctx, x); err != nil {
				c.log.Warn("failed to stop the run of an answer that its reader stopped", "message", x.Message, "err", err)
			}
		}
	}
}

// stopStream ends the stream of p with a rest of its text and the blocks below it. After
// errNoStream it has ended without them, or Slack refuses to stop it and ends it by itself. After a
// PermanentError, too, the stream is forgotten. In any other error it may be open, and the call can
// be repeated.
func (c *Connector) stopStream(ctx context.Context, p post, x *stream, rest string, below []slackapi.Block) error {
	if d := c.penalties.left(methodStop, ""); d > 0 {
		return &connectors.RetryError{After: d, Err: fmt.Errorf("%s: slack asked for a pause", methodStop)}
	}
	options := []slackapi.MsgOption{metadata(p.Outgoing)}
	if rest != "" {
		options = append(options, slackapi.MsgOptionMarkdownText(rest))
	}
	if len(below) > 0 {
		options = append(options, slackapi.MsgOptionBlocks(below...))
	}
	c.streams.stopped()
	_, _, err := c.api.StopStreamContext(ctx, p.channel, p.Edit, options...)
	if err == nil {
		c.streams.drop(p.channel + "/" + p.Edit)
		return nil
	}
	code, k := judge(err)
	switch wait := waitFor(err); {
	case wait > 0:
		c.penalties.add(methodStop, "", wait)
		return &connectors.RetryError{After: wait, Err: fmt.Errorf("%s: too many calls", methodStop)}
	case code == "message_not_in_streaming_state" || k == gone:
		c.streams.drop(p.channel + "/" + p.Edit)
		return errNoStream
	case k == route || k == account:
		c.streams.drop(p.channel + "/" + p.Edit)
		return c.outcome(post{Outgoing: p.Outgoing, method: methodStop, channel: p.channel}, true, err)
	case k == content && len(below) > 0:
		c.log.Warn("slack rejected the buttons, sending without", "outgoing", p.ID, "err", code)
		return c.stopStream(ctx, p, x, rest, nil)
	case code != "" && k != server && rest != "": // it is edited in place of that
		if err := c.stopStream(ctx, p, x, "", nil); err != nil {
			return err
		}
		return errNoStream
	case code != "" && k != server:
		c.log.Info("slack refuses to stop a stream", "outgoing", p.ID, "err", code)
		c.streams.drop(p.channel + "/" + p.Edit)
		return errNoStream
	}
	x.unsure = true
	return c.refused(methodStop, c.cfg.BotTokenName, err)
}

// halt stops the stream of another process, whose text is unknown.
func (c *Connector) halt(ctx context.Context, p post) error {
	return unlessNoStream(c.stopStream(ctx, p, &stream{}, "", nil))
}

// tidyStreams stops streams that nothing continues, such as those of a run that ended without a
// text, until ctx is done.
func (c *Connector) tidyStreams(ctx context.Context) {
	for connectors.Sleep(ctx, streamIdle/4) {
		for key, x := range c.streams.idle() {
			if err := c.tidyStream(ctx, key, x); err != nil {
				c.log.Debug("failed to stop a stream", "stream", key, "err", err)
			}
		}
	}
}

func (c *Connector) tidyStream(ctx context.Context, key string, x *stream) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.streams.idle()[key] != x {
		return nil // it went on, or is complete
	}
	if x.ended {
		c.streams.drop(key)
		return nil
	}
	p := x.post
	_, p.Edit, _ = strings.Cut(key, "/")
	err := c.halt(ctx, p)
	if err != nil && time.Since(x.began) >= streamLasts {
		c.streams.drop(key)
	}
	return err
}
