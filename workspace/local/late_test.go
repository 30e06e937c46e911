package local

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// The output of a command is read also when no reader came in time, as on a
// busy machine, and when a process that got away holds the other end.
func TestReadLate(t *testing.T) {
	for _, size := range []int{0, 5, 60 << 10} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("x", size)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		_, limits, stop := workspace.Command{}.Start(t.Context())
		var got strings.Builder
		readAll(r, &got, limits)
		if got.String() != text {
			t.Errorf("%d of %d bytes are read", got.Len(), size)
		}
		stop()
		_, _ = r.Close(), w.Close()
	}
}
