package telegram

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A server that runs with --local has no size limits of Telegram's own server: files above 20 MB
// are read from its directory, and files above 50 MB are sent.
func TestLocalServer(t *testing.T) {
	dir := t.TempDir()
	inBubbleWith(t, telegramtest.Config{Local: dir}, Config{LocalFiles: dir}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		big := bytes.Repeat([]byte("x"), maxDownloadBytes+1)
		id, _ := b.server.AddFile("big.bin", big)["file_id"].(string)
		body, err := b.conn.Fetch(t.Context(), claybot.FileReference{Source: id})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if err != nil || !bytes.Equal(got, big) || body.Close() != nil {
			t.Errorf("fetched %d bytes: %v", len(got), err)
		}
		o := outgoing("7", "")
		o.File = &claybot.FileReference{Kind: claybot.FileDocument, Name: "big.bin", Size: maxUploadBytes + 1}
		open := func() (io.ReadCloser, error) { return io.NopCloser(zeros{}), nil }
		if _, err := b.conn.SendFile(t.Context(), o, open); err != nil {
			t.Errorf("send: %v", err)
		}
		o.File.Size = maxLocalUploadBytes + 1
		var permanent *connectors.PermanentError
		if _, err := b.conn.SendFile(t.Context(), o, open); !errors.As(err, &permanent) || !strings.Contains(err.Error(), "up to 2000 MB") {
			t.Errorf("send too much: %v", err)
		}
	})
}

// zeros is a file without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// What the server names is read only in the configured directory, and nothing but files.
func TestLocalPaths(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, d := range []string{inside, outside} {
		if err := errors.Join(os.Mkdir(d, 0o700), os.WriteFile(filepath.Join(d, "f"), []byte("bytes"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(filepath.Join(outside, "f"), filepath.Join(inside, "link")),
		os.Symlink("f", filepath.Join(inside, "near")), syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(inside, "f"):       "",
		filepath.Join(inside, "near"):    "",
		filepath.Join(inside, "link"):    "escapes",
		filepath.Join(inside, "pipe"):    "no file",
		inside:                           "no file",
		filepath.Join(inside, "missing"): "no such file",
		filepath.Join(outside, "f"):      "outside of local_files",
		inside + "/../out/f":             "outside of local_files",
		"/etc/passwd":                    "outside of local_files",
		inside + "2/f":                   "outside of local_files",
	} {
		c := New(Config{Token: telegramtest.Token, LocalFiles: inside})
		body, err := c.openLocal(path)
		var refused *connectors.RefusedError
		switch {
		case err == nil:
			got, _ := io.ReadAll(body)
			_ = body.Close() // it was only read
			if want != "" || string(got) != "bytes" {
				t.Errorf("%s: read %q, want %s", path, got, want)
			}
		case want == "" || !errors.As(err, &refused) || refused.Err == nil || !strings.Contains(refused.Err.Error(), want):
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if _, err := New(Config{Token: telegramtest.Token}).openLocal("/x/f"); err == nil || !strings.Contains(errors.Unwrap(err).Error(), "set local_files") {
		t.Errorf("without local_files: %v", err)
	}
	var refused *connectors.RefusedError
	if _, err := New(Config{Token: telegramtest.Token, LocalFiles: filepath.Join(dir, "gone")}).openLocal(filepath.Join(dir, "gone", "f")); err == nil || errors.As(err, &refused) {
		t.Errorf("a directory that is missing for now: %v", err)
	}
}
