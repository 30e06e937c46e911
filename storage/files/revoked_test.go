package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot"
)

// Revocations survive, the newest ones by name; of older ones, and of a damaged file, it
// is known that something may have been revoked.
func TestRevoked(t *testing.T) {
	dir := t.TempDir()
	r, err := ReadRevoked(dir)
	if err != nil || r.Before != 0 || len(r.At) != 0 {
		t.Fatalf("without a file: %+v, %v", r, err)
	}
	for i := range maxRevoked + 2 {
		r.At[fmt.Sprint("person/", i)] = claybot.Time(i + 1)
	}
	if err := SaveRevoked(dir, r); err != nil {
		t.Fatal(err)
	}
	r, err = ReadRevoked(dir)
	if err != nil || r.Before != 2 || len(r.At) != maxRevoked || r.At["person/2"] != 3 {
		t.Errorf("kept %d, before %d, %v", len(r.At), r.Before, err)
	}
	if info, err := os.Stat(filepath.Join(dir, revokedName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, revokedName), []byte(`{"at`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = ReadRevoked(dir); err != nil || r.Before == 0 {
		t.Errorf("a damaged file: %+v, %v", r, err)
	}
}
