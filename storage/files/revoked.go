package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claybot/claybot"
)

const (
	// revokedName is the file of the revocations in the data directory.
	revokedName = "revoked.json"
	// maxRevoked is how many revocations are kept by name.
	maxRevoked = 5000
)

// Revoked lists what operators have revoked, in revoked.json. It is kept outside of the
// database, so that an older copy of the database approves nothing of it again.
type Revoked struct {
	// Before says that anything approved up to then may have been revoked: older entries
	// were dropped, or the file was damaged.
	Before claybot.Time `json:"before,omitempty"`
	// At is when, by what was revoked.
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
