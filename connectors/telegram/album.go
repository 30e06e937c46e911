package telegram

import (
	"context"
	"sync"

	"github.com/claybot/claybot"
)

// albums know which albums of groups are for the bot. Telegram delivers the parts of an album as
// messages of their own, and only one of them, the first as a rule, has the caption that names
// the bot. They are safe for concurrent use.
type albums struct {
	mu   sync.Mutex
	last map[string]string // by chat
}

// gather makes the parts of an album in a group belong together: a part without a caption is for
// the bot if an earlier part was. What is known survives a restart, and other members know it,
// with Marks.
func (c *Connector) gather(ctx context.Context, msg *claybot.AgentMessage, chat string) error {
	album := msg.Context.GroupID
	if album == "" || !msg.Context.Group {
		return nil
	}
	key := "telegram/" + c.bot + "/album/" + chat
	c.albums.mu.Lock()
	defer c.albums.mu.Unlock()
	known := c.albums.last[chat] == album
	switch {
	case known:
		msg.Context.Unaddressed = false
		return nil
	case msg.Context.Unaddressed && c.cfg.Marks != nil:
		last, err := c.cfg.Marks.Checkpoint(ctx, key)
		if err != nil {
			return err
		}
		msg.Context.Unaddressed = last != album
	case !msg.Context.Unaddressed && c.cfg.Marks != nil:
		if err := c.cfg.Marks.SetCheckpoint(ctx, key, album); err != nil {
			return err
		}
	}
	if !msg.Context.Unaddressed {
		if c.albums.last == nil || len(c.albums.last) > maxChats {
			c.albums.last = make(map[string]string)
		}
		c.albums.last[chat] = album
	}
	return nil
}
