package llm

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
)

// pictureTokens is about what a picture takes of a context: the most that the
// known providers count for one of MaxSide.
const pictureTokens = 1600

// How many pictures a model is shown.
const (
	// ShownMessages is how many messages with pictures keep them: the newest.
	ShownMessages = 20
	// shownStep is how many lose theirs at once. Each loss changes the chat in its
	// middle, behind which a provider's cache is of no use.
	shownStep = 10
	maxImages = 60       // in one chat
	maxBytes  = 20 << 20 // of all of them
)

// named is the content of m with a line for each of its pictures and documents.
func named(m Message) string {
	var lines []string
	if m.Content != "" {
		lines = append(lines, m.Content)
	}
	for _, i := range m.Images {
		lines = append(lines, unshown("picture", i.Name, i.MIMEType, len(i.Data), "shown to"))
	}
	for _, d := range m.Documents {
		lines = append(lines, unshown("document", d.Name, pdfType, len(d.Data), "read by"))
	}
	return strings.Join(lines, "\n")
}

// Without returns messages with lines of text in the place of their pictures, for a model that is
// blind, and of the documents that it does not read. The messages given do not change.
func Without(messages []Message, blind bool, unread func(Document) bool) []Message {
	out := messages
	for i := range messages {
		m := messages[i]
		gone := Message{Content: m.Content}
		if blind {
			gone.Images, m.Images = m.Images, nil
		}
		if slices.ContainsFunc(m.Documents, unread) {
			left := []Document(nil)
			for _, d := range m.Documents {
				if unread(d) {
					gone.Documents = append(gone.Documents, d)
				} else {
					left = append(left, d)
				}
			}
			m.Documents = left
		}
		if len(gone.Images)+len(gone.Documents) == 0 {
			continue
		}
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
		m.Content, m.encoding = named(gone), nil
		out[i] = m
	}
	return out
}

func unshown(what, name, kind string, size int, how string) string {
	var b strings.Builder
	b.WriteString("[the " + what)
	attr(&b, "name", name)
	fmt.Fprintf(&b, ", %s, %d bytes, cannot be %s this model]", kind, size, how)
	return b.String()
}

// An Album shows models the pictures and documents that came with messages and
// results. It keeps the newest ones ready, up to 32 MiB, and prepares one at a time.
// It may be used by any number of goroutines.
type Album struct {
	open func(claybot.FileReference) ([]byte, error)

	work sync.Mutex // held while a file is prepared
	mu   sync.Mutex
	kept map[string]*list.Element // of kepts, by key
	used *list.List               // the newest use first
	size int
}

const maxKept = 32 << 20

// A kept file is ready to be shown, or known to be none that can be.
type kept struct {
	key string
	shown
}

// A shown file is a picture or a document. The zero value cannot be shown.
type shown struct {
	image    Image
	document Document
}

func (s *shown) size() int { return len(s.image.Data) + len(s.document.Data) }

// NewAlbum returns an album of files that open reads: whole, or with an error.
// open must refuse files beyond MaxShown without reading them.
func NewAlbum(open func(claybot.FileReference) ([]byte, error)) *Album {
	return &Album{open: open, kept: map[string]*list.Element{}, used: list.New()}
}

// Show returns messages, as Messages made them, with the pictures among their
// Files as Images and the PDF files as Documents: those of the newest ShownMessages
// messages that have any, fewer where they are very many or large; of documents, no
// more than so many tokens. What cannot be opened, or is no picture and no document,
// stays the line of text that it is. The messages given do not change.
//
// More messages change nothing in front of them, until they push files out,
// several at once.
func (a *Album) Show(messages []Message, tokens int64) []Message {
	bearing := 0
	for _, m := range messages {
		if bears(m) {
			bearing++
		}
	}
	if bearing == 0 {
		return messages
	}
	skip := 0
	if over := bearing - ShownMessages; over > 0 {
		skip = (over + shownStep - 1) / shownStep * shownStep
	}
	out := slices.Clone(messages)
	left := room{images: maxImages, pages: MaxPages, bytes: maxBytes, tokens: tokens}
	for i, m := range slices.Backward(out) { // the newest are the most wanted
		if !bears(m) {
			continue
		}
		if bearing--; bearing < skip {
			break
		}
		for _, f := range m.Files {
			if MaxShown(f) == 0 || left.images == 0 && isPicture(f) {
				continue
			}
			if s, ok := a.ready(f); ok && left.take(&s) {
				out[i].show(f, s)
			}
		}
	}
	return out
}

// A room is what may be shown further in one chat.
type room struct {
	images, pages, bytes int
	tokens               int64 // of documents
}

// take reports whether there is room for a file, and takes it.
func (r *room) take(s *shown) bool {
	left, n := *r, s.document.Tokens()
	left.bytes -= s.size()
	left.pages -= s.document.Pages
	left.tokens -= n
	if len(s.image.Data) > 0 {
		left.images--
	}
	if left.bytes < 0 || left.images < 0 || n > 0 && (left.pages < 0 || left.tokens < 0) {
		return false
	}
	*r = left
	return true
}

// show adds a file, which has a name of its own where others have the same bytes.
func (m *Message) show(f claybot.FileReference, s shown) {
	seen := fileSeen
	if len(s.document.Data) > 0 {
		s.document.Name, seen = f.Name, fileRead
		m.Documents = append(slices.Clip(m.Documents), s.document)
	} else {
		s.image.Name = f.Name
		m.Images = append(slices.Clip(m.Images), s.image)
	}
	m.Content = strings.Replace(m.Content, fileBlock(f, fileUnseen), fileBlock(f, seen), 1)
}

// bears reports whether a message has files that may be shown.
func bears(m Message) bool {
	return slices.ContainsFunc(m.Files, func(f claybot.FileReference) bool { return MaxShown(f) > 0 })
}

func isPicture(f claybot.FileReference) bool { return strings.HasPrefix(f.MIMEType, "image/") }

const pdfType = "application/pdf"

// MaxShown is how many bytes a file may have to be shown to a model; 0 for one of a type that is not shown.
func MaxShown(f claybot.FileReference) int64 {
	switch {
	case isPicture(f):
		return MaxPicture
	case f.MIMEType == pdfType:
		return MaxDocument
	}
	return 0
}

func (a *Album) ready(f claybot.FileReference) (shown, bool) {
	if f.Size > MaxShown(f) {
		return shown{}, false
	}
	key := cmp.Or(f.SHA256, f.Path)
	if s, ok := a.find(key); ok {
		return s, s.size() > 0
	}
	a.work.Lock()
	defer a.work.Unlock()
	if s, ok := a.find(key); ok { // prepared concurrently
		return s, s.size() > 0
	}
	data, err := a.open(f)
	if err != nil {
		return shown{}, false // it may be there the next time
	}
	var s shown
	if isPicture(f) {
		s.image, err = Picture(data)
	} else {
		s.document, err = Readable(data)
	}
	if err != nil {
		s = shown{}
	}
	a.keep(key, s)
	return s, s.size() > 0
}

func (a *Album) find(key string) (shown, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.kept[key]
	if e == nil || key == "" {
		return shown{}, false
	}
	a.used.MoveToFront(e)
	return e.Value.(kept).shown, true
}

func (a *Album) keep(key string, s shown) {
	if key == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	const entry = 1 << 10 // what one takes beside its bytes, generously
	a.kept[key] = a.used.PushFront(kept{key, s})
	a.size += entry + s.size()
	for a.size > maxKept {
		old := a.used.Remove(a.used.Back()).(kept)
		delete(a.kept, old.key)
		a.size -= entry + old.size()
	}
}
