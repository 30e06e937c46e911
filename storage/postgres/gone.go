package postgres

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage"
)

// known reports an error that is claybot's own: it did not come from the way to
// the server.
func known(err error) bool {
	for _, e := range []error{
		storage.ErrLeaseLost, storage.ErrNotFound, storage.ErrDamaged, storage.ErrCanceled, storage.ErrTooMany, storage.ErrState, storage.ErrHeld,
		storage.ErrBusy, storage.ErrFull, pgx.ErrNoRows,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// isGone reports that a connection has ended.
func isGone(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) ||
		strings.Contains(err.Error(), "conn closed") // pgx has no value for it
}
