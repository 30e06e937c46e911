package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/claybot/claybot/storage"
)

// unsealed counts the pages of a database file, and those of them without the checksum that they should
// have. No process may use the file.
func unsealed(path string) (wrong, pages int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	page := make([]byte, pageSize)
	for n := uint32(1); ; n++ {
		switch _, err := io.ReadFull(f, page); {
		case errors.Is(err, io.EOF):
			return wrong, pages, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return 0, 0, fmt.Errorf("%s: %w: page %d is incomplete", path, storage.ErrDamaged, n)
		case err != nil:
			return 0, 0, err
		}
		pages++
		if n != lockPage && !sealed(n, page) {
			wrong++
		}
	}
}

// Reseal copies a database to a new file in which all pages have checksums, whatever those of the pages
// were, if SQLite finds nothing wrong with its tables and indexes; otherwise the error wraps
// storage.ErrDamaged. It is for a file that another program wrote: a byte that was damaged in a text
// stays damaged, and cannot be found any more. wrong is how many pages had another checksum; if none
// had, there is no copy. The file and its log stay as they are; what the log has is in the copy. No process
// may use the file.
func Reseal(ctx context.Context, path, to string) (wrong, pages int, err error) {
	wrong, pages, err = unsealed(path)
	switch {
	case err != nil:
		return 0, 0, err
	case pages == 0:
		return 0, 0, fmt.Errorf("%s: %w: it is empty", path, storage.ErrDamaged)
	case wrong == 0:
		return 0, pages, nil
	}
	merged := to + ".merged" // SQLite moves the log into the file that it opens
	defer func() { err = errors.Join(err, removeFiles(merged)) }()
	for _, end := range []string{"", "-wal"} {
		if err := copyFile(path+end, merged+end); err != nil && !(end != "" && errors.Is(err, fs.ErrNotExist)) {
			return 0, 0, err
		}
	}
	found, err := Foreign(ctx, merged, "PRAGMA integrity_check(1)")
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, classify(err))
	}
	if said := found[0][0]; said != "ok" { // there is always a row
		return 0, 0, fmt.Errorf("%s: %w: %s", path, storage.ErrDamaged, strings.Join(strings.Fields(said), " "))
	}
	return wrong, pages, copySummed(merged, to)
}
