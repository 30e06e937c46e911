package provider

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"sync"

	"github.com/claybot/claybot/llm"
)

// maxUnread is how many documents are remembered; then they are forgotten, which costs a refused request each.
const maxUnread = 4096

// An unread remembers the documents that the server refused to read, so that a later request of the same conversation is not
// refused for them anew. The zero value is ready, and may be used by any number of goroutines.
type unread struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]struct{}
}

// add notes the documents of messages.
func (u *unread) add(messages []llm.Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == 0 || len(u.all) >= maxUnread {
		u.all = make(map[[sha256.Size]byte]struct{})
	}
	for i := range messages {
		for j := range messages[i].Documents {
			u.all[sha256.Sum256(messages[i].Documents[j].Data)] = struct{}{}
		}
	}
}

// without returns messages with lines of text in the place of the documents that were noted.
func (u *unread) without(messages []llm.Message) []llm.Message {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == 0 {
		return messages
	}
	noted := func(d llm.Document) bool {
		_, ok := u.all[sha256.Sum256(d.Data)]
		return ok
	}
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if !slices.ContainsFunc(m.Documents, noted) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(m.Documents), noted)
		m.Documents = slices.DeleteFunc(slices.Clone(m.Documents), func(d llm.Document) bool { return !noted(d) })
		m.Content, m.Documents = llm.ContentFor(*m, true, false), left
	}
	return out
}

// unexplained reports a refusal of the request that names no optional field.
func (f *Failure) unexplained() bool {
	switch f.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return f.Class == llm.Permanent && !f.Account && f.refused|f.once == 0
	}
	return false
}
