package provider

import (
	"crypto/sha256"
	"net/http"
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
	var sums [][sha256.Size]byte
	for i := range messages {
		for j := range messages[i].Documents {
			sums = append(sums, messages[i].Documents[j].Sum())
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == 0 || len(u.all) >= maxUnread {
		u.all = make(map[[sha256.Size]byte]struct{})
	}
	for _, sum := range sums {
		u.all[sum] = struct{}{}
	}
}

// has reports whether a document was noted. Others do not wait while it is hashed.
func (u *unread) has(d llm.Document) bool {
	u.mu.Lock()
	none := len(u.all) == 0
	u.mu.Unlock()
	if none {
		return false
	}
	sum := d.Sum()
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.all[sum]
	return ok
}

// Fit returns a request with lines of text in the place of the pictures and documents that the server is known not to take.
func (c *Client) Fit(r llm.Request) llm.Request {
	r.Messages = c.fitted(r.Messages, c.refused.Load())
	return r
}

// fitted are messages without what belongs to the given optional fields, and without the documents that were noted.
func (c *Client) fitted(messages []llm.Message, without uint32) []llm.Message {
	none := without&c.cfg.Documents != 0
	return llm.Without(messages, without&c.cfg.Images != 0, func(d llm.Document) bool { return none || c.unread.has(d) })
}

// unexplained reports a refusal of the request that names no optional field.
func (f *Failure) unexplained() bool {
	switch f.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return f.Class == llm.Permanent && !f.Account && f.refused|f.once == 0
	}
	return false
}

// oneOf takes a refusal that may be about documents and pictures to be about the documents, as long as the request has any. If it
// is about the pictures, the server says so again.
func (c *Client) oneOf(f *Failure, without uint32) {
	if (f.refused|f.once)&^without&c.cfg.Documents != 0 {
		f.refused, f.once = f.refused&^c.cfg.Images, f.once&^c.cfg.Images
	}
}
