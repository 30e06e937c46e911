package provider

import (
	"bytes"
	"crypto/sha256"
	"maps"
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

// add notes documents.
func (u *unread) add(documents []llm.Document) {
	if len(documents) == 0 {
		return
	}
	sums := make(map[[sha256.Size]byte]struct{}, len(documents))
	for i := range documents {
		sums[documents[i].Sum()] = struct{}{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == 0 || len(u.all) >= maxUnread {
		u.all = sums
		return
	}
	maps.Copy(u.all, sums)
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
	r.Messages = c.fitted(r.Messages, c.refused.Load(), nil)
	return r
}

// fitted are messages without what belongs to the given optional fields, without the documents that were noted and without
// those that are doubted.
func (c *Client) fitted(messages []llm.Message, without uint32, doubted []llm.Document) []llm.Message {
	none := without&c.cfg.Documents != 0
	return llm.Without(messages, without&c.cfg.Images != 0, func(d llm.Document) bool {
		return none || contains(doubted, d) || c.unread.has(d)
	})
}

// documents are those of messages, each once and the newest first.
func documents(messages []llm.Message) (all []llm.Document) {
	for _, m := range slices.Backward(messages) {
		for _, d := range slices.Backward(m.Documents) {
			if !contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

func contains(all []llm.Document, d llm.Document) bool {
	return slices.ContainsFunc(all, func(other llm.Document) bool { return bytes.Equal(other.Data, d.Data) })
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
