package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.Boots = (*Boots)(nil)

// bootsName is the file of the boot record in the data directory.
const bootsName = "boots.json"

// Boots is the boot record of a data directory, in boots.json. The file is
// replaced atomically, or overwritten while the disk is full. Only the process with the
// DirLock writes it.
type Boots struct {
	dir  string
	fs   FS
	last storage.Boot

	mu  sync.Mutex
	now storage.Boot
}

// OpenBoots reads the record of the previous process and starts a new one. An
// unreadable record counts as none. On an error the record could not be written;
// the Boots is still usable.
func OpenBoots(dir string) (*Boots, error) {
	b := &Boots{dir: dir, fs: osFS{}}
	var err error
	if b.last, err = ReadBoot(dir); err != nil {
		b.last = storage.Boot{}
	}
	b.now.Unclean = b.last.UncleanNext()
	b.now.Started, b.now.Store, b.now.Filled, b.now.Full = claybot.Now(), b.last.Store, b.last.Filled, b.last.Full
	return b, errors.Join(err, b.Update(true, func(*storage.Boot) {}))
}

// ReadBoot reads the boot record of a data directory; the zero Boot when there is
// none. It locks nothing.
func ReadBoot(dir string) (b storage.Boot, err error) {
	data, err := os.ReadFile(filepath.Join(dir, bootsName))
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		return storage.Boot{}, fmt.Errorf("read %s: %w", bootsName, err)
	}
	return b, nil
}

// MarkStore changes the mark of the database in the boot record of a data directory, and
// nothing else of it. Only the process that has the DirLock may call it, before OpenBoots.
func MarkStore(dir string, m storage.StoreMark) error {
	b, _ := ReadBoot(dir) // an unreadable record counts as none
	b.Store = m
	data, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("write %s: %w", bootsName, err)
	}
	if err := replace(osFS{}, dir, bootsName, data); err != nil {
		return failed("write "+bootsName, err)
	}
	return nil
}

// Last implements storage.Boots.
func (b *Boots) Last() storage.Boot { return b.last }

// Store is the mark of the database in the record of this process.
func (b *Boots) Store() storage.StoreMark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now.Store
}

// Update implements storage.Boots.
func (b *Boots) Update(sync bool, change func(*storage.Boot)) error {
	b.mu.Lock()
	defer b.mu.Unlock() // one writer, in the order of the changes
	change(&b.now)
	data, err := json.Marshal(b.now)
	if err != nil {
		return fmt.Errorf("write %s: %w", bootsName, err)
	}
	if sync {
		err = replace(b.fs, b.dir, bootsName, data)
	} else { // survives a crash of the process, not of the machine
		next := filepath.Join(b.dir, bootsName+".next")
		if err = os.WriteFile(next, data, 0o600); err == nil {
			err = os.Rename(next, filepath.Join(b.dir, bootsName))
		}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = b.overwrite(data)
	}
	if err != nil {
		return failed("write "+bootsName, err)
	}
	return nil
}

// overwrite writes a record into the space that the file has already: a full disk has none for
// another file. A record that does not fit there either leaves the one before. A power loss
// meanwhile may leave an unreadable record, which counts as none.
func (b *Boots) overwrite(data []byte) error {
	name := filepath.Join(b.dir, bootsName)
	before, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if n := len(before) - len(data); n > 0 {
		data = append(data, bytes.Repeat([]byte{' '}, n)...)
	}
	if err = b.into(name, data); err != nil {
		err = errors.Join(err, b.into(name, before))
	}
	return err
}

// into writes data over the beginning of a file and drops what is after it.
func (b *Boots) into(name string, data []byte) error {
	f, err := b.fs.Open(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Forced records that an operator ends the process at once.
func (b *Boots) Forced() error {
	return b.Update(true, func(r *storage.Boot) { r.Forced = !r.Closed })
}

// Close records a clean shutdown.
func (b *Boots) Close() error {
	return b.Update(true, func(r *storage.Boot) {
		*r = storage.Boot{Unclean: r.Unclean, Started: r.Started, Closed: true, Store: r.Store, Filled: r.Filled, Full: r.Full}
	})
}

const (
	// revokedName is the file of the revocations in the data directory.
	revokedName = "revoked.json"
	// maxRevoked is how many revocations are kept by name.
	maxRevoked = 5000
)

// Revoked lists what operators have revoked, in revoked.json. It is kept outside of the
// database, so that an older copy of the database approves nothing of it again.
type Revoked struct {
	// Before is the time up to which any approval may have been revoked, because older
	// entries were dropped or the file was damaged.
	Before claybot.Time `json:"before,omitempty"`
	// At maps what was revoked to the time of the revocation.
	At map[string]claybot.Time `json:"at"`
}

// ReadRevoked reads the revocations of a data directory. A damaged file counts as one by
// which all that was approved up to now may have been revoked.
func ReadRevoked(dir string) (r Revoked, err error) {
	data, err := os.ReadFile(filepath.Join(dir, revokedName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return r, fmt.Errorf("read %s: %w", revokedName, err)
	case json.Unmarshal(data, &r) != nil:
		r = Revoked{Before: claybot.Now()}
	}
	if r.At == nil {
		r.At = make(map[string]claybot.Time)
	}
	return r, nil
}

// SaveRevoked returns once the revocations are durable. It keeps the newest ones.
func SaveRevoked(dir string, r Revoked) error {
	for len(r.At) > maxRevoked {
		oldest := ""
		for key, at := range r.At {
			if oldest == "" || at < r.At[oldest] {
				oldest = key
			}
		}
		r.Before = max(r.Before, r.At[oldest])
		delete(r.At, oldest)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write %s: %w", revokedName, err)
	}
	if err := replace(osFS{}, dir, revokedName, data); err != nil {
		return failed("write "+revokedName, err)
	}
	return nil
}
