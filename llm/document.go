package llm

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// Limits of documents for models: those of the strictest provider, Anthropic, whose requests have at most 32 MB and 100 pages.
const (
	MaxDocument = 10 << 20 // bytes of a file
	MaxPages    = 100      // of all documents in one chat
)

const (
	// pageTokens is about what a page takes of a context, as its text and as an image of it.
	pageTokens = 3000
	// maxInflated bounds what is unpacked of a document to count its pages.
	maxInflated = 8 << 20
	// guessedPage is how many bytes a page is taken for where none is found.
	guessedPage = 64 << 10
	maxFileName = 128 // runes
	// signs begin what is counted, and maxNested is in how many dictionaries at most.
	signs     = "<>/"
	maxNested = 64
)

// ErrNoDocument is the error of what no model can be given to read.
var ErrNoDocument = errors.New("not a document that can be read")

// A Document is a PDF file that a model reads.
type Document struct {
	Data  []byte
	Name  string
	Pages int // a guess where the file does not tell

	sum [sha256.Size]byte // of the data; zero: not known yet
}

// Sum is the SHA-256 of the data. It costs nothing for a document that Readable made.
func (d *Document) Sum() [sha256.Size]byte {
	if d.sum == [sha256.Size]byte{} {
		return sha256.Sum256(d.Data)
	}
	return d.sum
}

// Tokens is about how many tokens the document takes of a context.
func (d *Document) Tokens() int64 { return int64(d.Pages) * pageTokens }

// FileName is the name for providers that want one, which ends in .pdf.
func (d *Document) FileName() string {
	const ending = ".pdf"
	name := []rune(strings.TrimSuffix(d.Name, ending))
	if len(name) == 0 {
		name = []rune("document")
	}
	return string(name[:min(len(name), maxFileName)]) + ending
}

var (
	typePattern   = lazyregexp.New(`^/Type\s*/Pages?\b`)
	countPattern  = lazyregexp.New(`^/Count\s+(\d{1,9})(\s+\d+\s+R)?`) // of the second form, the number is that of an object
	objectsSign   = []byte("/ObjStm")
	streamSign    = []byte("stream")
	endSign       = []byte("endstream")
	encryptedSign = []byte("/Encrypt")
)

// Readable makes a file ready for a model: a PDF of at most MaxDocument bytes and MaxPages pages that is not encrypted. Whatever
// the bytes are, it takes a bounded time and memory. The error wraps ErrNoDocument and is fit for people.
func Readable(data []byte) (Document, error) {
	switch {
	case len(data) > MaxDocument:
		return Document{}, fmt.Errorf("%w: it has more than %d MiB", ErrNoDocument, MaxDocument>>20)
	case !bytes.HasPrefix(data, []byte("%PDF-")):
		return Document{}, fmt.Errorf("%w: it is not a PDF", ErrNoDocument)
	case bytes.Contains(data, encryptedSign):
		return Document{}, fmt.Errorf("%w: it is encrypted", ErrNoDocument)
	}
	d := Document{Data: data, Pages: pages(data)}
	if d.Pages > MaxPages {
		return Document{}, fmt.Errorf("%w: it has more than %d pages", ErrNoDocument, MaxPages)
	}
	d.sum = sha256.Sum256(data)
	return d, nil
}

// pages counts the pages of a PDF, which stand in the file or in its packed objects: the page objects, or more where a list of
// pages says so, as it may name one object many times.
func pages(data []byte) int {
	n, listed := counted(string(data))
	left := int64(maxInflated)
	for rest := data; left > 0; {
		at := bytes.Index(rest, objectsSign)
		if at < 0 {
			break
		}
		rest = rest[at:]
		begin := bytes.Index(rest, streamSign)
		if begin < 0 {
			break
		}
		rest = bytes.TrimLeft(rest[begin+len(streamSign):], "\r\n")
		packed, after, _ := bytes.Cut(rest, endSign)
		text := inflated(packed, left)
		left -= int64(len(text)) + 1
		more, most := counted(string(text))
		n, listed = n+more, max(listed, most)
		rest = after
	}
	if n = max(n, listed); n == 0 {
		n = (len(data) + guessedPage - 1) / guessedPage
	}
	return n
}

// A dictionary is what matters of an object in a PDF.
type dictionary struct {
	list  bool // of pages
	count int
}

// counted returns how many page objects stand in a text, and the highest count of its lists of pages. Other objects, such as
// bookmarks, have counts too.
func counted(text string) (n, listed int) {
	open := make([]dictionary, 1, maxNested)
	for at := strings.IndexAny(text, signs); at >= 0; at = strings.IndexAny(text, signs) {
		text = text[at:]
		last, size := &open[len(open)-1], 1
		switch {
		case strings.HasPrefix(text, "<<"):
			if size = 2; len(open) == maxNested { // in what is no text, most are never closed
				open = slices.Delete(open, 0, 1)
			}
			open = append(open, dictionary{})
		case strings.HasPrefix(text, ">>"):
			if size = 2; last.list {
				listed = max(listed, last.count)
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				open = append(open, dictionary{})
			}
		case strings.HasPrefix(text, "/Type"):
			switch kind := typePattern.FindString(text); {
			case strings.HasSuffix(kind, "s"):
				last.list = true
			case kind != "":
				n++
			}
		case strings.HasPrefix(text, "/Count"):
			if m := countPattern.FindStringSubmatch(text); m != nil && m[2] == "" {
				last.count, _ = strconv.Atoi(m[1])
			}
		}
		text = text[size:]
	}
	return n, listed
}

// inflated unpacks at most so many bytes; nothing where data is packed in another way.
func inflated(data []byte, most int64) []byte {
	r, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	defer r.Close()
	out, _ := io.ReadAll(io.LimitReader(r, most)) // what is broken counts as far as it goes
	return out
}
