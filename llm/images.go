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

// WithoutImages is the content of m for a model that sees no pictures: a line
// stands for each.
func WithoutImages(m Message) string {
	if len(m.Images) == 0 {
		return m.Content
	}
	var b strings.Builder
	b.WriteString(m.Content)
	for _, i := range m.Images {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("[the picture")
		attr(&b, "name", i.Name)
		fmt.Fprintf(&b, ", %s, %d bytes, cannot be shown to this model]", i.MIMEType, len(i.Data))
	}
	return b.String()
}

// An Album shows models the pictures that came with messages and results. It
// keeps the newest ones ready, up to 32 MiB, and prepares one at a time. It may
// be used by any number of goroutines.
type Album struct {
	open func(claybot.FileReference) ([]byte, error)

	work sync.Mutex // held while a picture is prepared
	mu   sync.Mutex
	kept map[string]*list.Element // of kepts, by key
	used *list.List               // kept pictures, the newest use first
	size int
}

const maxKept = 32 << 20

// A kept picture is ready to be shown, or known not to be one.
type kept struct {
	key   string
	image Image // no Data: it cannot be shown
}

// NewAlbum returns an album of files that open reads: whole, or with an error.
// open must refuse files beyond MaxPicture without reading them.
func NewAlbum(open func(claybot.FileReference) ([]byte, error)) *Album {
	return &Album{open: open, kept: map[string]*list.Element{}, used: list.New()}
}

// Show returns messages, as Messages made them, with the pictures among their
// Files as Images: those of the newest ShownMessages messages that have any,
// fewer where they are very many or large. What cannot be opened or is no
// picture stays the line of text that it is. The messages given do not change.
//
// More messages change nothing in front of them, until they push pictures out,
// several at once.
func (a *Album) Show(messages []Message) []Message {
	bearing := 0
	for _, m := range messages {
		if hasPicture(m) {
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
	images, size := 0, 0
	for i, m := range slices.Backward(out) { // the newest are the most wanted
		if !hasPicture(m) {
			continue
		}
		if bearing--; bearing < skip {
			break
		}
		for _, f := range m.Files {
			if images == maxImages || !isPicture(f) {
				continue
			}
			image, ok := a.image(f)
			if !ok || size+len(image.Data) > maxBytes {
				continue
			}
			images, size = images+1, size+len(image.Data)
			image.Name = f.Name
			out[i].Images = append(slices.Clip(out[i].Images), image)
			out[i].Content = strings.Replace(out[i].Content, fileBlock(f, fileUnseen), fileBlock(f, fileSeen), 1)
		}
	}
	return out
}

func hasPicture(m Message) bool { return slices.ContainsFunc(m.Files, isPicture) }

func isPicture(f claybot.FileReference) bool { return strings.HasPrefix(f.MIMEType, "image/") }

func (a *Album) image(f claybot.FileReference) (Image, bool) {
	if f.Size > MaxPicture {
		return Image{}, false
	}
	key := cmp.Or(f.SHA256, f.Path)
	if i, ok := a.find(key); ok {
		return i, len(i.Data) > 0
	}
	a.work.Lock()
	defer a.work.Unlock()
	if i, ok := a.find(key); ok { // prepared concurrently
		return i, len(i.Data) > 0
	}
	data, err := a.open(f)
	if err != nil {
		return Image{}, false // it may be there the next time
	}
	i, err := Picture(data)
	if err != nil {
		i = Image{}
	}
	a.keep(key, i)
	return i, len(i.Data) > 0
}

func (a *Album) find(key string) (Image, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.kept[key]
	if e == nil || key == "" {
		return Image{}, false
	}
	a.used.MoveToFront(e)
	return e.Value.(kept).image, true
}

func (a *Album) keep(key string, i Image) {
	if key == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	const entry = 1 << 10 // what one takes beside its bytes, generously
	a.kept[key] = a.used.PushFront(kept{key, i})
	a.size += entry + len(i.Data)
	for a.size > maxKept {
		old := a.used.Remove(a.used.Back()).(kept)
		delete(a.kept, old.key)
		a.size -= entry + len(old.image.Data)
	}
}
