package storage

import (
	"context"
	"io"
)

// Blobs keeps the bytes of files, by key. Keys are paths of letters, digits and
// "-_./" that do not begin with a slash; what has been written under a key never
// changes.
type Blobs interface {
	// Put keeps size bytes of content under a key, whole or not at all. The same
	// key again may replace the bytes by equal ones.
	Put(ctx context.Context, key string, content io.Reader, size int64) error
	// Open reads what Put has kept; ErrNotFound.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Delete removes all keys that begin with prefix, which must not be empty. None
	// is no error.
	Delete(ctx context.Context, prefix string) error
	// Check tells in one sentence with the next step why the store cannot be used;
	// nil when it can be written, read and deleted from.
	Check(ctx context.Context) error
}
