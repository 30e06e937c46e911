package files

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"sync"
)

// quarantineLimit bounds the bytes kept; the oldest files go first.
const quarantineLimit = 64 << 20

// A quarantine keeps damaged bytes for the operator.
type quarantine struct {
	fs    FS
	dir   string
	limit int64
	mu    sync.Mutex // one writer; damage is rare
}

// keep stores data durably under a name made of origin and its checksum, and
// reports whether it was new. Damage that stays where it is, is kept once.
func (q *quarantine) keep(origin string, data []byte) (fresh bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	data = data[:min(int64(len(data)), q.limit)]
	path := fmt.Sprintf("%s/%s.%08x", q.dir, origin, crc32.Checksum(data, castagnoli))
	if known, err := exists(q.fs, path); known || err != nil {
		return false, err
	}
	if err := q.shrink(q.limit - int64(len(data))); err != nil {
		return false, err
	}
	if err := write(q.fs, path, data); err != nil {
		_ = q.fs.Remove(path) // half a copy would pass for a whole one
		return false, err
	}
	return true, q.fs.SyncDir(q.dir)
}

// shrink removes the oldest files until at most limit bytes are left.
func (q *quarantine) shrink(limit int64) error {
	entries, err := q.fs.ReadDir(q.dir)
	if err != nil {
		return err
	}
	var total int64
	var kept []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			kept = append(kept, info)
			total += info.Size()
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range kept {
		if total <= limit {
			break
		}
		if err := q.fs.Remove(q.dir + "/" + info.Name()); err != nil {
			return err
		}
		total -= info.Size()
	}
	return nil
}
