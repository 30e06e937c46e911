package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/storage"
)

// One flipped bit in a text, which no older claybot has caused, must not be sealed as healthy.
func TestReviewResealFlippedBit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	db, err := Open(t.Context(), path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	change(t, db, "INSERT INTO documents (scope, path, text, size, at) VALUES ('s', 'a', ?, 9000, 1)", strings.Repeat("x", 9000))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndex(b, []byte(strings.Repeat("x", 500)))
	b[i+100] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	err = Verify(t.Context(), path)
	t.Logf("verify: %v", err)
	if !errors.Is(err, storage.ErrDamaged) {
		t.Skip("not seen as damaged")
	}
	if err := Reseal(t.Context(), path); err == nil {
		t.Errorf("a flipped bit was sealed; verify afterwards: %v", Verify(t.Context(), path))
	}
}
