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
	recordCost  = 512         // bytes that each record of the history takes beside its texts
)

// A kept chat is that of a history that may have grown since. The history stays in memory
// with it, so that no other one gets its backing array.
type kept struct {
	history []claybot.Record
	chat    *llm.Chat
}

// recent returns the chats of conversations that had a turn a moment ago.
func (l *Loop) recent() *storage.Recent[claybot.AgentID, kept] {
	l.once.Do(func() { l.chats = storage.NewRecent[claybot.AgentID, kept](recentLimit, recentIdle) })
	return l.chats
}

// chatFor takes the kept chat of an agent, if this history shares the backing array of the
// history that it was made of: stores only ever append to one. Otherwise the chat is empty.
func (l *Loop) chatFor(id claybot.AgentID, history []claybot.Record) kept {
	old, _ := l.recent().Take(id)
	if n := len(old.history); n > 0 && len(history) >= n && &history[0] == &old.history[0] {
		return kept{history, old.chat}
	}
	return kept{history, new(llm.Chat)}
}

// keepChat keeps the chat of an agent after a turn.
func (l *Loop) keepChat(id claybot.AgentID, k kept) {
	if len(k.history) >= leastKept {
		l.recent().Put(id, k, int64(k.chat.Size()+len(k.history)*recordCost))
	}
}
