package webchat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// A drip is a body of which a piece comes from time to time.
type drip struct {
	pieces int
	piece  []byte
	every  time.Duration
}

func (d *drip) Read(b []byte) (int, error) {
	if d.pieces--; d.pieces < 0 {
		return 0, io.EOF
	}
	time.Sleep(d.every)
	return copy(b, d.piece), nil
}

// fetch makes a request in a bubble.
func fetch(t *testing.T, hc *http.Client, method, url string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Login", "me")
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// A file that takes longer than the server's limits is kept, and its sender
// hears of it.
func TestSlowUploadIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, hc *http.Client) {
		resp := fetch(t, hc, "POST", "http://chat/files?name=slow.txt", &drip{pieces: 100, piece: []byte("12345"), every: 5 * time.Second})
		var kept fileView
		if err := json.NewDecoder(resp.Body).Decode(&kept); err != nil || resp.StatusCode != http.StatusCreated || kept.Size != 500 {
			t.Errorf("%s %+v, %v", resp.Status, kept, err)
		}
	})
}

// large keeps a file that no buffer takes whole.
func large(t *testing.T, m *memory) (f claybot.FileReference, content []byte) {
	t.Helper()
	content = bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	f, err := m.Attach(t.Context(), me, claybot.FileReference{Name: "large"}, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return f, content
}

// Who reads slowly, but does, gets the whole file.
func TestSlowDownload(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, hc *http.Client) {
		f, content := large(t, m)
		resp := fetch(t, hc, "GET", "http://chat/files/"+f.ID, nil)
		var got bytes.Buffer
		for {
			_, err := io.CopyN(&got, resp.Body, 32<<10)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("cut after %d of %d bytes: %v", got.Len(), len(content), err)
			}
			time.Sleep(pieceWait / 3)
		}
		if !bytes.Equal(got.Bytes(), content) {
			t.Errorf("got %d bytes, want %d", got.Len(), len(content))
		}
	})
}

// Who reads nothing is cut, and holds the file no longer.
func TestStalledDownloadIsCut(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, hc *http.Client) {
		f, content := large(t, m)
		resp := fetch(t, hc, "GET", "http://chat/files/"+f.ID, nil)
		time.Sleep(pieceWait + time.Second)
		if n, err := io.Copy(io.Discard, resp.Body); err == nil || n >= int64(len(content)) {
			t.Errorf("got %d of %d bytes, %v", n, len(content), err)
		}
	})
}
