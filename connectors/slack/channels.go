package slack

import (
	"context"
	"fmt"
	"sync"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot/connectors"
)

// channels knows the names of channels, from conversations.info. The zero value is ready.
type channels struct {
	mu    sync.Mutex
	known map[string]channelName
}

type channelName struct {
	name  string // as #general; empty if unknown
	until time.Time
}

func (s *channels) get(channel string) (name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.known[channel]
	return c.name, ok && time.Now().Before(c.until)
}

func (s *channels) put(channel, name string, valid time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxChannels {
		s.known = make(map[string]channelName)
	}
	s.known[channel] = channelName{name, time.Now().Add(valid)}
	return name
}

// channelName returns how a channel is called, or nothing where Slack does not say so quickly, as
// without the scope channels:read, or groups:read for private ones
// (docs.slack.dev/reference/methods/conversations.info, read 2026-11-28).
func (c *Connector) channelName(ctx context.Context, channel string) string {
	name, ok := c.channels.get(channel)
	if ok || c.penalties.left(methodInfo, "") > 0 {
		return name
	}
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	info, err := c.api.GetConversationInfoContext(ctx, &slackapi.GetConversationInfoInput{ChannelID: channel})
	if err == nil && info.ID != channel {
		err = fmt.Errorf("the answer is about %.20q", info.ID)
	}
	if err != nil {
		if wait := waitFor(err); wait > 0 {
			c.penalties.add(methodInfo, "", wait)
		}
		c.log.Debug("the name of a channel is unknown", "channel", channel, "err", err)
		return c.channels.put(channel, name, channelAgain)
	}
	if info.IsMpIM || info.Name == "" { // the name of a group message is made of those of its members
		return c.channels.put(channel, "", channelTime)
	}
	return c.channels.put(channel, connectors.PersonName("#"+info.Name), channelTime)
}
