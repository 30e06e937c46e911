package browser_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/browser"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/docker"
)

const testImage = "claybot-test:browser"

// image makes the image once. The error says what is missing.
var image = sync.OnceValue(func() error {
	out, err := exec.Command("../../scripts/browser-image.sh").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
})

// containers is a provider of its own for a test, on a real engine.
func containers(t *testing.T, c docker.Config) *docker.Provider {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, browsers in containers are not tested: -short")
	}
	if err := image(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("with CI=true all tests run, and this one cannot: %v", err)
		}
		t.Skipf("SKIPPED, browsers in containers are not tested: %v", err)
	}
	c.Node, c.Image = "test-"+rand.Text(), testImage
	p := docker.New(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
		defer cancel()
		infos, err := p.List(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, i := range infos {
			if err := p.Remove(ctx, i.Key, true); err != nil {
				t.Error(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// A rig is the tools with a browser in a container.
type rig struct {
	*testing.T
	set   *tools.Set
	all   *browser.Browsers
	p     *docker.Provider
	ws    workspace.Workspace
	env   tools.Env
	files map[string][]byte
	calls int
}

const key = workspace.Key("agent/one")

// rigOf opens a workspace with the hardening and the limits of every other.
func rigOf(t *testing.T, spec workspace.Spec) *rig {
	t.Helper()
	p := containers(t, docker.Config{})
	ws, err := p.Open(t.Context(), key, spec)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, p: p, ws: ws, files: make(map[string][]byte), env: tools.Env{Agent: claybot.Agent{ID: "one"}, Run: "run"}}
	r.all = browser.New(browser.Config{
		Open: func(ctx context.Context, _ tools.Env, s devices.Spec) (devices.Device, error) {
			ws, err := p.Open(ctx, key, spec)
			if err != nil {
				return nil, err
			}
			return chromium.Remote{Workspace: ws, Machine: true}.Open(ctx, s)
		},
		SaveFile: func(_ context.Context, _ tools.Env, name, mimeType string, content []byte) (claybot.FileReference, error) {
			f := claybot.FileReference{ID: fmt.Sprint("file", len(r.files)), Name: name, MIMEType: mimeType, Size: int64(len(content))}
			r.files[f.ID] = content
			return f, nil
		},
	})
	t.Cleanup(func() {
		if err := r.all.Close(); err != nil {
			t.Error(err)
		}
	})
	if r.set, err = tools.NewSet(r.all.Tools()...); err != nil {
		t.Fatal(err)
	}
	return r
}

// do makes a call. A record that is not OK is returned as it is.
func (r *rig) do(ctx context.Context, name, args string) claybot.Record {
	r.Helper()
	r.calls++
	rec, wait := r.set.Call(ctx, r.env, claybot.ToolCall{ID: fmt.Sprint("call", r.calls), Name: name, Args: args})
	if wait != nil {
		r.Fatalf("%s waits", name)
	}
	return rec
}

// must makes a call that works.
func (r *rig) must(name, args string) string {
	r.Helper()
	rec := r.do(r.Context(), name, args)
	if !rec.OK {
		r.Fatalf("%s %s: %s", name, args, rec.Text)
	}
	return rec.Text
}

// number is that of what has a label on a page.
func number(t *testing.T, page, label string) string {
	t.Helper()
	for line := range strings.Lines(page) {
		n, rest, ok := strings.Cut(strings.TrimSpace(line), ". ")
		if ok && strings.Contains(rest, label) {
			return n
		}
	}
	t.Fatalf("no %q in %s", label, page)
	return ""
}

const site = `<!doctype html><title>Tea</title><link rel="icon" href="data:,">
<style>body { margin: 0; background: rgb(0, 128, 0) }</style>
<h1>Tea</h1><p id="p">nothing yet</p>
<form onsubmit="p.textContent = 'wanted: ' + q.value + ', ' + size.value; return false">
<label>Kind <input id="q"></label> <label>Size <select id="size"><option>small</option><option>large</option></select></label><button>Order</button></form>
<a href="more.html">More</a><div style="height: 2000px"></div>`

func TestInAContainer(t *testing.T) {
	r := rigOf(t, workspace.Spec{})
	for name, content := range map[string]string{"tea.html": site, "more.html": "<title>More</title><p>" + strings.Repeat("all about tea ", 800)} {
		if err := r.ws.WriteFile(t.Context(), name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.ws.Exec(t.Context(), workspace.Command{Shell: "mkdir /tmp/claybot-browser-killed", Wall: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	rec := r.do(t.Context(), "browser_read", `{}`)
	if rec.OK || !strings.Contains(rec.Text, "browser_open") {
		t.Errorf("read without a page: %s", rec.Text)
	}
	rec = r.do(t.Context(), "browser_open", `{"url":"file:tea.html"}`)
	if !rec.OK || !rec.Tainted || !strings.Contains(rec.Text, "title: Tea\naddress: file:///work/tea.html\n") {
		t.Fatal(rec.Text)
	}
	page := r.must("browser_type", fmt.Sprintf(`{"field":%s,"text":"large"}`, number(t, rec.Text, "choice Size")))
	page = r.must("browser_type", fmt.Sprintf(`{"field":%s,"text":"green","submit":true}`, number(t, page, "Kind")))
	if !strings.Contains(page, "wanted: green, large") {
		t.Error(page)
	}
	text := r.must("browser_screenshot", `{}`)
	full := r.must("browser_screenshot", `{"full_page":true}`)
	if !strings.Contains(text, "file0") || !strings.Contains(full, "file1") {
		t.Errorf("%s\n%s", text, full)
	}
	for id, tall := range map[string]bool{"file0": false, "file1": true} {
		img, err := png.Decode(bytes.NewReader(r.files[id]))
		if err != nil {
			t.Fatal(err)
		}
		size := img.Bounds().Size()
		if got := color.RGBAModel.Convert(img.At(size.X-5, size.Y-5)); got != (color.RGBA{0, 128, 0, 255}) || size.X < 1000 || (size.Y > 2000) != tall {
			t.Errorf("%s: %v, color %v", id, size, got)
		}
	}
	page = r.must("browser_click", fmt.Sprintf(`{"action":%s}`, number(t, page, "More")))
	if !strings.Contains(page, "title: More") {
		t.Error(page)
	}
	if long := r.must("browser_read", `{}`); len(long) < 2*len(page) || !strings.Contains(long, "all about tea") {
		t.Errorf("%d bytes are read, %d were shown", len(long), len(page))
	}
	if page = r.must("browser_click", `{"action":0}`); !strings.Contains(page, "title: Tea") {
		t.Errorf("back: %s", page)
	}
	for args, why := range map[string]string{
		`{"action":99}`: "no number 99", `{"action":-1}`: "no number -1", `{"action":` + number(t, page, "Kind") + `}`: "use browser_type", `{"action":"x"}`: "action",
	} {
		if rec := r.do(t.Context(), "browser_click", args); rec.OK || !strings.Contains(rec.Text, why) {
			t.Errorf("%s: %s", args, rec.Text)
		}
	}
	if page = r.must("browser_open", `{"url":"data:text/html,<title>Data</title>"}`); !strings.Contains(page, "title: Data") {
		t.Error(page)
	}
	r.must("browser_close", `{}`)
	// Those that have ended are listed until the container's first process has seen it.
	gone := "i=0; while ps | grep -q '[c]hromium' && [ $i -lt 60 ]; do sleep 1; i=$((i+1)); done; "
	left, err := r.ws.Exec(t.Context(), workspace.Command{Shell: gone + "ls /tmp; ps | grep -c '[c]hromium'", Wall: 5 * time.Minute})
	if err != nil || strings.TrimSpace(left.Output) != "0" {
		t.Errorf("left over: %q, %v", left.Output, err)
	}
}

// A page in a container without a network reaches nothing outside, also where the
// machine answers; what listens in the container is the agent's own.
func TestNoNetwork(t *testing.T) {
	hits := make(chan string, 100)
	machine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { hits <- q.URL.Path }))
	defer machine.Close()
	r := rigOf(t, workspace.Spec{})
	page := `<!doctype html><title>Reaching</title><link rel="icon" href="data:,"><img src="` + machine.URL + `/img"><p id="p"></p>
<script>Promise.allSettled(["` + machine.URL + `/fetch", "http://elsewhere.test/", "http://169.254.169.254/latest", "file:///etc/passwd"].map(u => fetch(u))).then(all => p.textContent = "done " + all.map(a => a.status).join(" "))</script>`
	if err := r.ws.WriteFile(t.Context(), "index.html", []byte(page)); err != nil {
		t.Fatal(err)
	}
	text := r.must("browser_open", `{"url":"file:index.html"}`)
	if !strings.Contains(text, "done rejected rejected rejected rejected") || !strings.Contains(text, "outside of the hosts: elsewhere.test") {
		t.Error(text)
	}
	for address, why := range map[string]string{
		"https://example.com/": "no network", "http://169.254.169.254/": "no network", "file:///etc/passwd": "only files below /work",
		machine.URL: "cannot be loaded",
	} {
		if rec := r.do(t.Context(), "browser_open", `{"url":"`+address+`"}`); rec.OK || !strings.Contains(rec.Text, why) {
			t.Errorf("%s: %s", address, rec.Text)
		}
	}
	if len(hits) > 0 {
		t.Errorf("reached %s", <-hits)
	}
	if _, err := r.ws.Exec(t.Context(), workspace.Command{Shell: "httpd -p 127.0.0.1:8080 -h /work", Wall: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	if text := r.must("browser_open", `{"url":"http://localhost:8080/index.html"}`); !strings.Contains(text, "title: Reaching") {
		t.Error(text)
	}
}

// A browser that is killed, a workspace that is removed and a call that is stopped
// leave one clear error each, and the next opening works.
func TestEnds(t *testing.T) {
	r := rigOf(t, workspace.Spec{})
	open := func() {
		t.Helper()
		if text := r.must("browser_open", `{"url":"data:text/html,<title>Alive</title>"}`); !strings.Contains(text, "title: Alive") {
			t.Fatal(text)
		}
	}
	gone := func(what string) {
		t.Helper()
		// That the browser is gone is known a moment after it is.
		for {
			rec := r.do(t.Context(), "browser_read", `{}`)
			if !rec.OK && strings.Contains(rec.Text, "browser_open") {
				return
			}
			if !rec.OK || t.Context().Err() != nil {
				t.Fatalf("%s: %s", what, rec.Text)
			}
		}
	}
	open()
	if _, err := r.ws.Exec(t.Context(), workspace.Command{Shell: "killall -9 chromium", Wall: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	gone("killed")
	open()
	if err := r.p.Remove(t.Context(), key, false); err != nil {
		t.Fatal(err)
	}
	gone("removed")
	open()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if rec := r.do(ctx, "browser_read", `{}`); rec.OK {
		t.Error(rec.Text)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	page := "<title>Slow</title><script>setTimeout(() => { for (;;); }, 50)</script>"
	time.AfterFunc(2*time.Second, func() { cancel(errors.New("stopped")) })
	if rec := r.do(ctx, "browser_open", `{"url":"data:text/html,`+page+`"}`); !rec.OK && !strings.Contains(rec.Text, "stopped") {
		t.Error(rec.Text)
	}
	r.must("browser_close", `{}`)
	open()
}

// An image without a browser is told with the next step.
func TestNoBrowser(t *testing.T) {
	r := rigOf(t, workspace.Spec{Env: []workspace.Var{{Name: "PATH", Value: "/bin:/sbin"}}})
	rec := r.do(t.Context(), "browser_open", `{"url":"data:text/html,hi"}`)
	if rec.OK || !strings.Contains(rec.Text, "image is without Chromium") || !strings.Contains(rec.Text, "workspaces, image") {
		t.Error(rec.Text)
	}
}
