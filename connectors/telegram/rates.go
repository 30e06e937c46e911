package telegram

import (
	"cmp"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A Rate is how many messages and edits Telegram takes.
type Rate struct {
	Chat  int // a second, in one private chat
	Group int // a minute, in one group or channel
	All   int // a second, of the bot
}

const (
	// chatWindow is what the rate of a private chat is counted over: Telegram takes short
	// bursts above it.
	chatWindow = 10 * time.Second
	// maxChats is how many chats are known before idle ones are forgotten.
	maxChats = 256
)

// rates divide the calls that Telegram allows among the answers that grow, by chat and in
// all. They are safe for concurrent use.
type rates struct {
	limit Rate
	nodes func() int
	all   *connectors.Budget

	mu    sync.Mutex
	chats map[int64]*connectors.Budget
	sweep int // how many chats there are before the next look for idle ones
}

func newRates(r Rate, nodes func() int) rates {
	r.Chat, r.Group, r.All = cmp.Or(r.Chat, chatPerSecond), cmp.Or(r.Group, groupPerMinute), cmp.Or(r.All, allPerSecond)
	return rates{
		limit: r, nodes: nodes, all: connectors.NewBudget(r.All, time.Second),
		chats: make(map[int64]*connectors.Budget), sweep: maxChats,
	}
}

// of returns the budget of a chat.
func (r *rates) of(chat int64) *connectors.Budget {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.chats[chat]
	if b != nil {
		return b
	}
	if len(r.chats) >= r.sweep {
		for id, b := range r.chats {
			if b.Idle() {
				delete(r.chats, id)
			}
		}
		r.sweep = max(maxChats, 2*len(r.chats))
	}
	if chat < 0 {
		b = connectors.NewBudget(r.limit.Group, time.Minute)
	} else {
		b = connectors.NewBudget(r.limit.Chat*int(chatWindow/time.Second)+1, chatWindow) // the final text is the burst
	}
	r.chats[chat] = b
	return b
}

// progress asks for a call that shows unfinished text of a message. It grants it with 0, or
// returns how long the text gives way to others.
func (r *rates) progress(chat int64, message string) time.Duration {
	own, members := r.of(chat), connectors.Members(r.nodes)
	if d := own.Progress(message, members); d > 0 {
		return d
	}
	d := r.all.Progress(message, members)
	if d > 0 {
		own.Return(message)
	}
	return d
}

// spend counts a call that gives way to nothing.
func (r *rates) spend(chat int64, message string) {
	r.of(chat).Spend(message)
	r.all.Spend(message)
}

// refused learns from a 429 for a chat, or for the whole bot.
func (r *rates) refused(chat int64, after time.Duration, all bool) {
	if all {
		r.all.Refused(after)
		return
	}
	r.of(chat).Refused(after)
}
