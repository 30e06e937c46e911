package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A desk stands in for the daemon: it answers as told and notes what it was
// asked.
type desk struct {
	mu      sync.Mutex
	answers map[string]string // "GET /agents" → JSON; an answer may begin with its status
	asked   []string
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	q := r.URL.Query()
	if q.Has("key") { // new in every call
		q.Set("key", "K")
	}
	target := r.URL.EscapedPath()
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, strings.TrimSpace(r.Method+" "+target+" "+string(body)))
	answer, ok := d.answers[r.Method+" "+r.URL.EscapedPath()]
	switch {
	case !ok:
		answer = `404{"error":{"message":"There is no such thing."}}`
	case answer == "":
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if refused, is := strings.CutPrefix(answer, "404"); is {
		w.WriteHeader(http.StatusNotFound)
		answer = refused
	}
	_, _ = io.WriteString(w, answer) // a client that is gone fails the test itself
}

// openDesk serves on the socket of a data directory, which commands of this test
// use.
func openDesk(t *testing.T, answers map[string]string) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "desk") // shorter than t.TempDir: the path of a socket must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("CLAYBOT_DATA_DIR", dir)
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "claybot.sock"))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{answers: answers}
	srv := &http.Server{Handler: d}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return d
}

// use runs a command line against the desk.
func (d *desk) use(args ...string) (code int, out, errs string, asked []string) {
	d.mu.Lock()
	d.asked = nil
	d.mu.Unlock()
	var o, e strings.Builder
	code = run(args, strings.NewReader(""), &o, &e)
	d.mu.Lock()
	defer d.mu.Unlock()
	return code, o.String(), e.String(), d.asked
}

// A deal is a command line with what it asks of the daemon and says.
type deal struct {
	args  string // separated by |
	code  int
	asks  string // separated by |
	says  string // a part of the output
	warns string // a part of what goes to standard error
}

func (d *desk) deals(t *testing.T, all []deal) {
	t.Helper()
	for _, tc := range all {
		code, out, errs, asked := d.use(strings.Split(tc.args, "|")...)
		if code != tc.code || !strings.Contains(out, tc.says) || !strings.Contains(errs, tc.warns) || strings.Join(asked, "|") != tc.asks {
			t.Errorf("claybot %s: exit %d, asked %q, said\n%s%s\nwant exit %d, asked %q, said %q %q", tc.args, code, asked, out, errs, tc.code, tc.asks, tc.says, tc.warns)
		}
	}
}

// wantJSON checks that a command prints JSON that has a member.
func (d *desk) wantJSON(t *testing.T, member string, args ...string) {
	t.Helper()
	code, out, errs, _ := d.use(args...)
	var v any
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || !strings.Contains(out, member) {
		t.Errorf("claybot %v: exit %d, %v in %s%s; want %s", args, code, err, out, errs, member)
	}
}

func TestNoDaemon(t *testing.T) {
	t.Setenv("CLAYBOT_DATA_DIR", t.TempDir())
	id := strings.Repeat("a", 24)
	for _, args := range []string{
		"agents", "agents stop " + id, "agents reset " + id, "agents delete --yes " + id, "inbox " + id, "inbox drop " + id, "reminders " + id,
		"cron", "cron show x", "cron add --name n --every 1h p", "cron edit x --name n", "cron enable x", "cron disable x", "cron run x", "cron delete x",
		"heartbeat", "heartbeat run",
	} {
		code, out, errs, _ := new(desk).use(strings.Fields(args)...)
		if code != exitError || out != "" || !strings.Contains(errs, "no daemon is running on") || !strings.Contains(errs, "start one with: claybot serve") {
			t.Errorf("claybot %s without a daemon: exit %d, %s%s", args, code, out, errs)
		}
	}
}
