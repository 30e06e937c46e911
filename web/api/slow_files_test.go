package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
)

// A cabinet is a desk with one agent, whose only file has this content.
type cabinet struct {
	web.Agents
	web.Files
	content []byte
}

func (cabinet) Agent(context.Context, claybot.AgentID) (storage.IndexEntry, error) {
	return storage.IndexEntry{}, nil
}

func (cabinet) SaveFiles(context.Context, agentsystem.Address, []agentsystem.SentFile) ([]claybot.FileReference, error) {
	return nil, nil
}

func (cabinet) SaveFile(_ context.Context, _ agentsystem.Address, f claybot.FileReference, content io.Reader) (claybot.FileReference, error) {
	n, err := io.Copy(io.Discard, content)
	f.ID, f.Size = "f", n
	return f, err
}

func (c cabinet) OpenFile(context.Context, claybot.AgentID, string) (claybot.FileReference, io.ReadCloser, error) {
	return claybot.FileReference{ID: "f", Size: int64(len(c.content))}, io.NopCloser(bytes.NewReader(c.content)), nil
}

// exchange makes one request of a cabinet in a bubble, over a line without
// buffers, with the limits of the real server.
func exchange(t *testing.T, c cabinet, method, path string, body io.Reader, then func(t *testing.T, resp *http.Response)) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		for _, route := range api.Routes(api.Config{Backend: web.Backend{Agents: c, Files: c}}) {
			mux.Handle(route.Pattern, route.Handler)
		}
		l := pipes{make(chan net.Conn), make(chan struct{})}
		srv := &http.Server{Handler: mux, ReadTimeout: 15 * time.Second, WriteTimeout: time.Minute}
		served := make(chan struct{})
		go func() { defer close(served); _ = srv.Serve(l) }()
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			conn, far := net.Pipe()
			l.conns <- far
			return conn, nil
		}}
		defer func() { tr.CloseIdleConnections(); _ = srv.Close(); <-served }()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		then(t, resp)
	})
}

// A drip is a body of which a byte comes from time to time.
type drip struct {
	left  int
	every time.Duration
}

func (d *drip) Read(b []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, io.EOF
	}
	time.Sleep(d.every)
	b[0] = 'x'
	return 1, nil
}

// A file that takes longer than the server's limits is kept, and its sender
// hears of it.
func TestSlowUploadIsAnswered(t *testing.T) {
	exchange(t, cabinet{}, "POST", "/agents/a/files?name=x", &drip{100, 5 * time.Second}, func(t *testing.T, resp *http.Response) {
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusCreated || !bytes.Contains(b, []byte(`"size":100`)) {
			t.Errorf("%s %s, %v", resp.Status, b, err)
		}
	})
}

var large = cabinet{content: bytes.Repeat([]byte("0123456789abcdef"), 1<<16)}

// Who reads slowly, but does, gets the whole file, however long it takes.
func TestSlowDownload(t *testing.T) {
	exchange(t, large, "GET", "/agents/a/files/f", nil, func(t *testing.T, resp *http.Response) {
		var got bytes.Buffer
		for {
			_, err := io.CopyN(&got, resp.Body, 32<<10)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("cut after %d of %d bytes: %v", got.Len(), len(large.content), err)
			}
			time.Sleep(api.PieceWait * 9 / 10)
		}
		if !bytes.Equal(got.Bytes(), large.content) {
			t.Errorf("got %d bytes, want %d", got.Len(), len(large.content))
		}
	})
}

// Who reads nothing is cut.
func TestStalledDownloadIsCut(t *testing.T) {
	exchange(t, large, "GET", "/agents/a/files/f", nil, func(t *testing.T, resp *http.Response) {
		time.Sleep(api.PieceWait + time.Second)
		if n, err := io.Copy(io.Discard, resp.Body); err == nil || n >= int64(len(large.content)) {
			t.Errorf("got %d of %d bytes, %v", n, len(large.content), err)
		}
	})
}
