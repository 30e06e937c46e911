package chromium_test

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/devices/devicetest"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/local"
)

// place is a workspace on this machine.
func place(t *testing.T, env ...workspace.Var) workspace.Workspace {
	t.Helper()
	p := local.New(local.Config{Dir: t.TempDir()})
	spec := workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}, Memory: 8 << 30, PIDs: 2000, Env: env}
	if os.Getuid() != 0 { // by Landlock there are no Unix sockets, without which a browser does not start
		spec.Unsafe = []string{local.Unconfined}
	}
	ws, err := p.Open(t.Context(), "browser/one", spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Remove(context.WithoutCancel(t.Context()), "browser/one", true); err != nil {
			t.Error(err)
		}
	})
	return ws
}

func write(t *testing.T, ws workspace.Workspace, name, content string) {
	t.Helper()
	if err := ws.WriteFile(t.Context(), name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

// launch opens a device in a workspace. The tests may run as root, for whom a
// browser has no sandbox.
func launch(t *testing.T, ws workspace.Workspace, address string) *rig {
	t.Helper()
	d, err := chromium.Remote{Workspace: ws, Machine: true}.Open(t.Context(), devices.Spec{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return (&rig{T: t, Device: d}).start()
}

const notes = `<!doctype html><title>Notes</title><link rel="icon" href="data:,">
<h1>Notes</h1><p id="p">nothing yet</p>
<form onsubmit="p.textContent = 'kept ' + q.value; return false"><label>Note <input id="q"></label><button>Keep</button></form>
<button type="button" onclick="p.textContent = 'cleared'">Clear</button>
<a href="two.html">Two</a> <a href="/etc/passwd">Out</a> <a href="http://elsewhere.test/">Elsewhere</a>
<div style="height: 3000px"></div><p>The end</p>`

// A browser in a workspace shows the files of that workspace.
func TestRemote(t *testing.T) {
	installed(t)
	mark := t.TempDir()
	ws := place(t, workspace.Var{Name: "MARK", Value: mark})
	write(t, ws, "site/notes.html", notes)
	write(t, ws, "site/two.html", `<title>Two</title><link rel="icon" href="data:,">`+strings.Repeat("<p>a long text</p>", 1000))
	r := launch(t, ws, "file:site/notes.html")
	s := r.see()
	if s.Title != "Notes" || !strings.HasPrefix(s.URL, "file:///") || !strings.HasSuffix(s.URL, "/site/notes.html") {
		t.Fatalf("at %q, %s", s.Title, s.URL)
	}
	if want := []string{"type Note", "click Keep", "click Clear", "click Two"}; !slices.Equal(labels(s), want) {
		t.Errorf("actions %q", labels(s))
	}
	if s = r.do("Clear", ""); !strings.Contains(s.Text, "cleared") {
		t.Errorf("text %q", s.Text)
	}
	s = r.do("Note", "buy tea")
	field := s.Actions[0]
	field.Kind = devices.Submit
	if err := r.Act(t.Context(), field, ""); err != nil {
		t.Fatal(err)
	}
	if s = r.idle(); !strings.Contains(s.Text, "kept buy tea") {
		t.Errorf("text %q", s.Text)
	}
	view := r.Device.(devices.Viewer)
	part, err := view.Picture(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := view.Picture(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	one, err := png.DecodeConfig(bytes.NewReader(part))
	two, err2 := png.DecodeConfig(bytes.NewReader(whole))
	if err != nil || err2 != nil || one.Height > 1000 || two.Height < 3000 {
		t.Errorf("pictures of %v and %v: %v, %v", one, two, err, err2)
	}
	r.do("Two", "")
	if text, err := view.Text(t.Context()); err != nil || len(text) < 10_000 || len(text) > devices.MaxWholeText {
		t.Errorf("%d bytes of text, %v", len(text), err)
	}
	for address, why := range map[string]string{
		"file:///etc/passwd":         "only files below",
		"file:../workspace.json":     "only files below",
		"file://host/etc/passwd":     "only files below",
		"http://elsewhere.test/":     "no network",
		"http://u:secret@127.0.0.1/": "name and a password",
		"chrome://version":           "of this kind",
		"about:blank":                "of this kind",
		"ftp://elsewhere.test/":      "of this kind",
		"":                           "of this kind",
		"file:site/missing.html":     "is it there?",
	} {
		var fault *devices.Error
		err := r.Act(t.Context(), devices.Action{Kind: devices.Navigate, Target: address}, "")
		if !errors.As(err, &fault) || fault.Crash || !strings.Contains(fault.Text, why) || strings.Contains(fault.Text, "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := r.Act(t.Context(), devices.Action{Kind: devices.Navigate, Target: "data:text/html,<title>Data</title>"}, ""); err != nil || r.idle().Title != "Data" {
		t.Errorf("data: %v", err)
	}
	mine := profiles(t, mark)
	if len(mine) != 1 || !strings.HasPrefix(mine[0], "/tmp/claybot-browser-") {
		t.Fatalf("profiles %q", mine)
	}
	if info, err := os.Stat(mine[0]); err != nil || !info.IsDir() {
		t.Errorf("%s: %v", mine[0], err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left over: %s, %v", mine[0], err)
	}
}

// profiles are the folders of the browsers whose environment has a mark. Others may
// have browsers on this machine, too.
func profiles(t *testing.T, mark string) (all []string) {
	t.Helper()
	marked(t, mark, func(_ int, args []string) {
		for _, a := range args {
			if dir, ok := strings.CutPrefix(a, "--user-data-dir="); ok {
				all = append(all, filepath.Dir(dir))
			}
		}
	})
	return all
}

// Nothing outside of the workspace is reached, whatever a page tries.
func TestRemoteReachesNothing(t *testing.T) {
	installed(t)
	hits := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { hits <- q.URL.Path }))
	defer elsewhere.Close()
	// The shop is the workspace's own; a name that leads to the same machine is not.
	away := strings.Replace(elsewhere.URL, "127.0.0.1", "elsewhere.test", 1)
	shop := httptest.NewServer(&devicetest.Shop{Elsewhere: away})
	defer shop.Close()
	ws := place(t)
	write(t, ws, "frame.html", `<title>Frame</title><link rel="icon" href="data:,"><iframe src="/etc/passwd"></iframe><img src="`+away+`/img"><script>fetch("`+away+`/fetch").catch(() => document.title = "refused")</script>`)
	r := launch(t, ws, shop.URL+"/elsewhere")
	s := r.see()
	if s.Title != "Elsewhere" || !strings.Contains(strings.Join(s.Faults, "\n"), "outside of the hosts: elsewhere.test") {
		t.Errorf("at %q, faults %q", s.Title, s.Faults)
	}
	if err := r.Act(t.Context(), devices.Action{Kind: devices.Navigate, Target: "file:frame.html"}, ""); err != nil {
		t.Fatal(err)
	}
	s = r.idle()
	if all := strings.Join(s.Faults, "\n"); s.Title != "refused" || !strings.Contains(all, "outside of the hosts: file:") {
		t.Errorf("at %q, faults %q", s.Title, s.Faults)
	}
	if len(hits) > 0 {
		t.Errorf("reached %s", <-hits)
	}
}

// With a proxy, the hosts are reached through it and nothing else is.
func TestRemoteProxy(t *testing.T) {
	installed(t)
	asked := make(chan string, 1000)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked <- q.Method + " " + q.Host
		w.Header().Set("Content-Type", "text/html")
		if strings.HasPrefix(q.Host, "shop.test") {
			_, _ = w.Write([]byte(`<title>Shop</title><link rel="icon" href="data:,"><img src="http://cdn.shop.test/a.png"><img src="http://elsewhere.test/b.png"><a href="http://elsewhere.test/">Away</a><a href="/on">On</a>`))
		}
	}))
	defer proxy.Close()
	hosts, err := devices.ParseHosts([]string{"shop.test", "*.shop.test"})
	if err != nil {
		t.Fatal(err)
	}
	remote := chromium.Remote{Workspace: place(t), Machine: true, Proxy: strings.TrimPrefix(proxy.URL, "http://")}
	d, err := remote.Open(t.Context(), devices.Spec{URL: "http://shop.test/", Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := (&rig{T: t, Device: d}).start()
	s := r.see()
	if s.Title != "Shop" || !slices.Equal(labels(s), []string{"click On"}) || !strings.Contains(strings.Join(s.Faults, "\n"), "elsewhere.test") {
		t.Errorf("at %q, %q, faults %q", s.Title, labels(s), s.Faults)
	}
	if err := r.Act(t.Context(), devices.Action{Kind: devices.Navigate, Target: "http://elsewhere.test/"}, ""); err == nil {
		t.Error("another host is opened")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for len(asked) > 0 {
		seen[<-asked] = true
	}
	if !seen["GET shop.test"] || !seen["GET cdn.shop.test"] || seen["GET elsewhere.test"] {
		t.Errorf("the proxy was asked for %v", seen)
	}
}

// A browser that ends, is cut off or speaks nonsense is a crash, or an error that
// says what to do.
func TestRemoteCrash(t *testing.T) {
	installed(t)
	mark := t.TempDir()
	ws := place(t, workspace.Var{Name: "MARK", Value: mark})
	write(t, ws, "a.html", `<title>A</title>`)
	r := launch(t, ws, "file:a.html")
	if n := killMarked(t, mark); n == 0 {
		t.Fatal("no process of the browser is found")
	}
	chromium.Lost(r.Device)
	var fault *devices.Error
	if _, err := r.Perceive(t.Context()); !errors.As(err, &fault) || !fault.Crash {
		t.Fatalf("perceived after a crash: %v", err)
	}
	if err := devices.Restart(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if s := r.idle(); s.Title != "A" {
		t.Errorf("at %q", s.Title)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Perceive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := devices.Restart(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// killMarked ends the browsers whose environment has a mark, as the system does when
// memory is short.
func killMarked(t *testing.T, mark string) (n int) {
	t.Helper()
	marked(t, mark, func(pid int, _ []string) {
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			n++
		}
	})
	return n
}

// marked calls found for each browser whose environment has a mark, not for the
// processes that belong to one.
func marked(t *testing.T, mark string, found func(pid int, args []string)) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range all {
		env, _ := os.ReadFile(dir + "/environ") // it may be gone, or another's
		args, _ := os.ReadFile(dir + "/cmdline")
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !bytes.Contains(env, []byte("MARK="+mark+"\x00")) || !bytes.Contains(args, []byte("\x00--user-data-dir=")) || bytes.Contains(args, []byte("\x00--type=")) {
			continue
		}
		found(pid, strings.Split(string(args), "\x00"))
	}
}

// anybody is a folder that everybody may enter, as commands have a user of their own.
func anybody(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "anybody-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// What a workspace may have in place of a browser is told in a sentence.
func TestRemoteNoBrowser(t *testing.T) {
	for name, tt := range map[string]struct{ program, want string }{
		"none":      {"", "its image is without Chromium"},
		"ends":      {"exit 3", "does not start"},
		"nonsense":  {`printf 'nonsense\000' >&4; cat <&3 >/dev/null`, "does not start"},
		"too long":  {`yes "no end" | head -c 70000000 >&4; cat <&3 >/dev/null`, "does not start"},
		"other end": {`exec 3<&- 4>&-; exit 0`, "does not start"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := anybody(t)
			for _, tool := range []string{"sh", "mkdir", "rm", "grep", "cat", "head", "yes", "printf", "sleep"} {
				if err := os.Symlink(which(t, tool), filepath.Join(bin, tool)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.program != "" {
				if err := os.WriteFile(filepath.Join(bin, "chromium"), []byte("#!/bin/sh\n"+tt.program+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			ws := place(t, workspace.Var{Name: "PATH", Value: bin})
			d, err := chromium.Remote{Workspace: ws, Machine: true}.Open(t.Context(), devices.Spec{URL: "data:text/html,hi"})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			var fault *devices.Error
			if err := d.Starter().Launch(t.Context()); !errors.As(err, &fault) || fault.Crash || !strings.Contains(fault.Text, tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A tardy workspace tells how a command has ended some time after its output has,
// as a busy engine does, unless the command is ended from outside before.
type tardy struct {
	workspace.Workspace
	by time.Duration
}

func (w tardy) Pipe(ctx context.Context, c workspace.Command) (workspace.Process, error) {
	p, err := w.Workspace.Pipe(ctx, c)
	return tardyProcess{p, ctx, w.by}, err
}

type tardyProcess struct {
	workspace.Process
	started context.Context
	by      time.Duration
}

func (p tardyProcess) Wait(ctx context.Context) (int, error) {
	code, err := p.Process.Wait(ctx)
	if err != nil {
		return code, err
	}
	select {
	case <-time.After(p.by):
		return code, nil
	case <-p.started.Done():
		return 0, context.Cause(p.started)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// What there is in place of a browser is told also when its exit code comes later
// than the end of its output.
func TestRemoteNoBrowserLate(t *testing.T) {
	bin := t.TempDir()
	for _, tool := range []string{"sh", "rm", "grep"} {
		if err := os.Symlink(which(t, tool), filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	ws := tardy{place(t, workspace.Var{Name: "PATH", Value: bin}), 300 * time.Millisecond}
	d, err := chromium.Remote{Workspace: ws, Machine: true}.Open(t.Context(), devices.Spec{URL: "data:text/html,hi"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var fault *devices.Error
	if err := d.Starter().Launch(t.Context()); !errors.As(err, &fault) || !strings.Contains(fault.Text, "its image is without Chromium") {
		t.Errorf("%v", err)
	}
}

func which(t *testing.T, tool string) string {
	t.Helper()
	for _, dir := range []string{"/usr/bin", "/bin"} {
		if path, err := filepath.EvalSymlinks(filepath.Join(dir, tool)); err == nil {
			return path
		}
	}
	t.Fatalf("no %s here", tool)
	return ""
}

// What is refused is refused before anything is started.
func TestRemoteNotOpened(t *testing.T) {
	ws := place(t)
	hosts, err := devices.ParseHosts([]string{"a.test"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"https://b.test/":      "only a.test can",
		"file:///etc/passwd":   "only files below",
		"http://127.0.0.1:80/": "cannot be reached",
	} {
		var fault *devices.Error
		if _, err := (chromium.Remote{Workspace: ws}).Open(t.Context(), devices.Spec{URL: address, Hosts: hosts}); !errors.As(err, &fault) || !strings.Contains(fault.Text, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"https://a.test/", "file:x.html"} {
		if _, err := (chromium.Remote{Workspace: ws}).Open(t.Context(), devices.Spec{URL: address, Hosts: hosts}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
