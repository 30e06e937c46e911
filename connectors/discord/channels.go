package discord

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/claybot/claybot/connectors"
)

// The types of channels that matter.
const (
	typeDM           = 1
	typeNewsThread   = 10
	typePublicThread = 11
	typeThread       = 12 // private
	typeForum        = 15
	typeMedia        = 16
)

// A channel is the part of a channel that claybot reads.
type channel struct {
	ID     string `json:"id"`
	Type   int    `json:"type"`
	Name   string `json:"name"`
	Guild  string `json:"guild_id"`
	Parent string `json:"parent_id"`
	Last   string `json:"last_message_id"`
}

func (c channel) thread() bool { return c.Type >= typeNewsThread && c.Type <= typeThread }

// forum reports whether a channel has threads alone.
func (c channel) forum() bool { return c.Type == typeForum || c.Type == typeMedia }

// place is where a message was written, as the rest of claybot names it: a channel of a server
// is <guild>/<channel>, and the conversation with one person its channel alone. A thread is a
// thread of its channel.
func (c channel) place() place {
	switch {
	case c.Guild == "":
		return place{channel: c.ID}
	case c.thread():
		return place{channel: c.Guild + "/" + c.Parent, thread: c.ID, group: true}
	}
	return place{channel: c.Guild + "/" + c.ID, group: true}
}

type place struct {
	channel, thread string
	group           bool
}

// channels remembers which channels are threads, and of what. The zero value is ready to use.
type channels struct {
	known memory[channel]
	mu    sync.Mutex
	lanes map[string]*used // by channel or thread
}

// used is the lane that events of a channel are in.
type used struct {
	lane  string
	whole bool // what all people do there is in one lane
	n     int
}

// enter returns the lane of what a person does in a channel or a thread: that of the channel, so
// that it stays in order where threads share a session, and that of all people where shares
// reports that they share one. A channel that is not known yet may be a thread of a shared one: it
// has a lane of its own, of all people, and keeps it while events are in it. leave must be called
// once the event is stored.
func (s *channels) enter(lane string, shares func(channel, user string) bool) (key string, leave func()) {
	id, user, _ := strings.Cut(lane, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known.get(id)
	known := c.ID != ""
	u := s.lanes[id]
	if u == nil {
		u = &used{lane: id, whole: !known && isID(id)}
		if c.thread() {
			u.lane = c.Parent
		}
		if s.lanes == nil {
			s.lanes = make(map[string]*used)
		}
		s.lanes[id] = u
	}
	u.n++
	if u.whole || known && shares(c.place().channel, user) {
		user = ""
	}
	return u.lane + "\x00" + user, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.n--; u.n == 0 && s.lanes[id] == u {
			delete(s.lanes, id)
		}
	}
}

// clear forgets the lanes of events that were dropped at the end of a Run: no leave is called for
// those.
func (s *channels) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes = nil
}

// learn notes channels of a server.
func (s *channels) learn(guild string, all ...channel) {
	for _, c := range all {
		if c.Guild = guild; c.ID != "" && guild != "" && (!c.thread() || c.Parent != "") {
			s.known.keep(c.ID, c, maxChannels)
		}
	}
}

// name is how people call the channel of a place, as #general; empty if Discord did not say.
func (s *channels) name(in place) string {
	_, id, _ := strings.Cut(in.channel, "/")
	if c := s.known.get(id); c.Name != "" {
		return connectors.PersonName("#" + c.Name)
	}
	return ""
}

// place returns where a message in a channel is. Events name the channel alone, which may be a
// thread: Discord is asked once. gone means that the bot does not see the channel any more.
func (c *Connector) place(ctx context.Context, guild, id string) (p place, gone bool, err error) {
	if guild == "" {
		return channel{ID: id}.place(), !isID(id), nil
	}
	known := c.channels.known.get(id)
	if known.ID != "" {
		return known.place(), false, nil
	}
	if !isID(id) || !isID(guild) {
		return p, true, nil
	}
	err = c.api.soon(ctx, channelCall(http.MethodGet, "get channel", id, "", nil), &known)
	switch {
	case absent(err):
		return p, true, nil
	case err != nil:
		return p, false, err
	}
	if known.ID != id || known.thread() && !isID(known.Parent) {
		return p, true, nil
	}
	c.channels.learn(guild, known)
	known.Guild = guild
	return known.place(), false, nil
}
