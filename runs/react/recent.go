package react

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

const (
	recentLimit = 32 << 20    // bytes of kept chats
	recentIdle  = time.Minute // for at most this long after the last turn
	leastKept   = 32          // records: a shorter chat is soon made anew
)

// A kept chat is that of a history that may have grown since. The history stays in memory
// with it, so that another one never has the same place.
type kept struct {
	history []claybot.Record
	chat    *llm.Chat
}

// recent returns the chats of conversations that had a turn a moment ago.
func (l *Loop) recent() *storage.Recent[claybot.AgentID, kept] {
	l.once.Do(func() { l.chats = storage.NewRecent[claybot.AgentID, kept](recentLimit, recentIdle) })
	return l.chats
}

// takeChat takes the chat of an agent, if it is that of this history as it was before: in
// the same place of memory, where records are only ever added. Otherwise the chat is empty.
func (l *Loop) takeChat(id claybot.AgentID, history []claybot.Record) kept {
	old, _ := l.recent().Take(id)
	if n := len(old.history); n > 0 && len(history) >= n && &history[0] == &old.history[0] {
		return kept{history, old.chat}
	}
	return kept{history, new(llm.Chat)}
}

// keepChat keeps the chat of an agent after a turn.
func (l *Loop) keepChat(id claybot.AgentID, k kept) {
	if len(k.history) >= leastKept {
		l.recent().Put(id, k, int64(k.chat.Size()))
	}
}
