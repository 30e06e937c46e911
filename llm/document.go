package llm

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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
	pagePattern   = lazyregexp.New(`/Type\s*/Page[^s\w]`)
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

// pages counts the pages of a PDF, which stand in the file or in its packed objects.
func pages(data []byte) int {
	n, left := len(pagePattern.FindAllStringIndex(string(data), -1)), int64(maxInflated)
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
		n += len(pagePattern.FindAllStringIndex(string(text), -1))
		rest = after
	}
	if n == 0 {
		n = (len(data) + guessedPage - 1) / guessedPage
	}
	return n
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
