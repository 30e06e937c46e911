package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Blobs stores the bytes of files by key. Keys are paths of letters, digits and
// "-_./" that do not begin with a slash. The content of a key never changes.
type Blobs interface {
	// Put atomically stores size bytes of content under a key. A second Put of
	// the same key may replace the bytes by equal ones.
	Put(ctx context.Context, key string, content io.Reader, size int64) error
	// Open opens the content of a key; ErrNotFound.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Delete removes all keys that begin with prefix, which must not be empty. It
	// is not an error if there are none.
	Delete(ctx context.Context, prefix string) error
	// Check returns nil if the store can be written, read and deleted from.
	// Otherwise the error is one sentence with the reason and the next step.
	Check(ctx context.Context) error
}

// MaxBlobKey is the maximum length of a key of Blobs, in bytes.
const MaxBlobKey = 512

// ErrBlobKey means that a key or prefix is invalid for all implementations of
// Blobs.
var ErrBlobKey = errors.New("not a key of a file")

// CheckBlobKey returns an error that is ErrBlobKey unless key may name a blob:
// segments of letters, digits and "-_.", with a slash between them, none of them
// empty, "." or "..", because stores read those differently.
func CheckBlobKey(key string) error {
	fault := blobPrefixFault(key)
	for segment := range strings.SplitSeq(key, "/") {
		if fault == "" && (segment == "" || segment == "." || segment == "..") {
			fault = "a part between slashes is empty, . or .."
		}
	}
	return blobKeyError(key, fault)
}

// CheckBlobPrefix is like CheckBlobKey for prefixes, which may end anywhere in
// a key.
func CheckBlobPrefix(prefix string) error { return blobKeyError(prefix, blobPrefixFault(prefix)) }

func blobPrefixFault(key string) string {
	switch {
	case key == "":
		return "it is empty"
	case len(key) > MaxBlobKey:
		return fmt.Sprintf("it has more than %d bytes", MaxBlobKey)
	case key[0] == '/':
		return "it begins with a slash"
	}
	for _, c := range []byte(key) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("-_./", rune(c)) {
			return "only letters, digits and -_./ may be in it"
		}
	}
	return ""
}

func blobKeyError(key, fault string) error {
	if fault == "" {
		return nil
	}
	if len(key) > 80 {
		key = key[:80] + "…"
	}
	return fmt.Errorf("%w: %q: %s", ErrBlobKey, key, fault)
}
