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
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/devices/devicetest"
)

// installed skips a test where there is no browser, with a line that says so;
// where CI=true that is a failure.
func installed(t *testing.T) {
	t.Helper()
	if _, err := (chromium.Browser{}).Find(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no chromium here, and CI=true asks for it: apt-get install chromium")
		}
		t.Skip("SKIPPED, the device is not tested: no chromium here; apt-get install chromium")
	}
}

// A rig is a device with an application.
type rig struct {
	*testing.T
	devices.Device
	url string
}

// explore opens a device with an application that a handler is.
func explore(t *testing.T, h http.Handler) *rig {
	t.Helper()
	installed(t)
	t.Setenv("CLAYBOT_TEST_SECRET", "not for browsers")
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return &rig{T: t, Device: open(t, srv.URL+"/"), url: srv.URL}
}

func open(t *testing.T, address string) devices.Device {
	t.Helper()
	host, _ := devices.HostOf(address)
	hosts, err := devices.ParseHosts([]string{host})
	if err != nil {
		t.Fatal(err)
	}
	d, err := chromium.Browser{}.Open(t.Context(), devices.Spec{URL: address, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func (r *rig) start() *rig {
	r.Helper()
	for _, call := range []func(context.Context) error{r.Starter().Ensure, r.Starter().Provision, r.Starter().Launch, r.WaitIdle} {
		if err := call(r.Context()); err != nil {
			r.Fatal(err, ": ", errors.Unwrap(err))
		}
	}
	return r
}

func (r *rig) see() devices.Screen {
	r.Helper()
	s, err := r.Perceive(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// do does what has a label, and sees what comes of it.
func (r *rig) do(label, value string) devices.Screen {
	r.Helper()
	s := r.see()
	i := slices.IndexFunc(s.Actions, func(a devices.Action) bool { return a.Label == label })
	if i < 0 {
		r.Fatalf("no %q on %s: %+v", label, s.Title, s.Actions)
	}
	if err := r.Act(r.Context(), s.Actions[i], value); err != nil {
		r.Fatalf("%s: %v", label, err)
	}
	return r.idle()
}

func (r *rig) navigate(path string) devices.Screen {
	r.Helper()
	if err := r.Act(r.Context(), devices.Action{Kind: devices.Navigate, Target: r.url + path}, ""); err != nil {
		r.Fatalf("%s: %v", path, err)
	}
	return r.idle()
}

func (r *rig) idle() devices.Screen {
	r.Helper()
	if err := r.WaitIdle(r.Context()); err != nil {
		r.Fatal(err)
	}
	return r.see()
}

func labels(s devices.Screen) []string {
	var all []string
	for _, a := range s.Actions {
		all = append(all, string(a.Kind)+" "+a.Label)
	}
	return all
}

func TestShop(t *testing.T) {
	shop := new(devicetest.Shop)
	r := explore(t, shop).start()
	home := r.see()
	if home.Title != "Teapots" || home.URL != r.url+"/" || !strings.Contains(home.Text, "Welcome. 0 orders") || len(home.Faults) != 0 {
		t.Errorf("home %+v", home)
	}
	if want := []string{"click Catalogue", "click Order", "click Tour", "click Imprint", "click News"}; !slices.Equal(labels(home), want) {
		t.Errorf("actions %q", labels(home))
	}
	if img, err := png.Decode(bytes.NewReader(home.PNG)); err != nil || img.Bounds().Dx() < 800 {
		t.Errorf("picture: %v", err)
	}

	catalogue := r.do("Catalogue", "")
	i := slices.IndexFunc(catalogue.Actions, func(a devices.Action) bool { return a.Kind == devices.Select })
	if i < 0 || catalogue.Actions[i].Label != "Sort by" || !slices.Equal(catalogue.Actions[i].Options, []string{"Name"}) {
		t.Fatalf("actions %+v", catalogue.Actions)
	}
	if s := r.do("Sort by", "Name"); s.ID != catalogue.ID {
		t.Error("what is selected makes another screen")
	}

	order := r.navigate("/order")
	if want := []string{"type Name", "type E-mail", "click It is a gift", "click Send the order", "click Home"}; !slices.Equal(labels(order), want) {
		t.Errorf("actions %q", labels(order))
	}
	if order.Actions[1].Input != "email" || !order.Actions[3].Once || order.Actions[4].Once || order.Actions[2].Once {
		t.Errorf("actions %+v", order.Actions)
	}
	if s := r.do("Name", `Ann "the pot" <b>`); s.ID != order.ID {
		t.Error("what is typed makes another screen")
	}
	r.do("E-mail", "ann@example.com")
	r.do("It is a gift", "")
	thanks := r.do("Send the order", "")
	if thanks.Title != "Thank you" || !slices.Equal(shop.Orders(), []string{`Ann "the pot" <b>`}) {
		t.Errorf("at %s, orders %q", thanks.Title, shop.Orders())
	}
	again := r.do("Home", "")
	if again.ID != home.ID || again.Text == home.Text {
		t.Errorf("numbers make another screen, or there are none: %q", again.Text)
	}

	if s := r.do("News", ""); !slices.Equal(s.Faults, []string{"the server answered with error 500"}) {
		t.Errorf("faults %q", s.Faults)
	}
	if s := r.navigate("/imprint"); len(s.Actions) != 0 {
		t.Errorf("actions %+v", s.Actions)
	}
	if err := r.Act(t.Context(), devices.Action{Kind: devices.Back}, ""); err != nil || r.idle().Title != "Something broke" {
		t.Errorf("back: %v", err)
	}
	var fault *devices.Error
	if err := r.Act(t.Context(), order.Actions[0], "x"); !errors.As(err, &fault) || fault.Crash {
		t.Errorf("an action of another screen: %v", err)
	}
	if s := r.navigate("/pot/7"); s.ID == r.navigate("/tour/1").ID {
		t.Error("two pages are one screen")
	}
	if one, two := r.navigate("/tour/1"), r.navigate("/tour/2"); one.ID == two.ID || one.Title == two.Title {
		t.Errorf("two parts of the tour are one screen: %s", one.Title)
	}
}

// A browser begins with nothing of what an earlier one left, and leaves nothing.
func TestRestart(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	r := explore(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if q.URL.Path == "/" {
			seen = append(seen, q.Header.Get("Cookie"))
		}
		http.SetCookie(w, &http.Cookie{Name: "visited", Value: "yes", MaxAge: 9999})
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<title>T</title><link rel="icon" href="data:,"><a href="/on">on</a>`))
	})).start()
	r.navigate("/")
	if err := devices.Restart(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.idle()
	if err := r.Starter().Launch(t.Context()); err != nil { // it runs
		t.Fatal(err)
	}
	mu.Lock()
	if want := []string{"", "visited=yes", ""}; !slices.Equal(seen, want) {
		t.Errorf("cookies %q", seen)
	}
	mu.Unlock()
	home := chromium.Home(r.Device)
	if _, err := os.Stat(home); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if _, err := os.Stat(home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", home, err)
	}
	var fault *devices.Error
	if _, err := r.Perceive(t.Context()); !errors.As(err, &fault) {
		t.Errorf("a closed device sees: %v", err)
	}
	if err := r.Starter().Ensure(t.Context()); !errors.As(err, &fault) {
		t.Errorf("a closed device works: %v", err)
	}
}

// Nothing outside of the hosts is reached, whatever a page tries.
func TestNothingElsewhere(t *testing.T) {
	var mu sync.Mutex
	var hits []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		hits = append(hits, q.Method+" "+q.URL.Path)
	}))
	defer elsewhere.Close()
	shop := &devicetest.Shop{Elsewhere: elsewhere.URL}
	r := explore(t, shop).start()
	s := r.do("Elsewhere", "")
	away := strings.TrimPrefix(elsewhere.URL, "http://")
	if s.Title != "Elsewhere" || !slices.Contains(s.Faults, "not reached, it is outside of the hosts: "+away) {
		t.Fatalf("at %s, faults %q", s.Title, s.Faults)
	}
	for _, label := range []string{"A link away", "A file", "Data", "The browser", "A popup away"} {
		if slices.Contains(labels(s), "click "+label) {
			t.Errorf("%q is offered", label)
		}
	}
	for _, tt := range []struct{ label, fault string }{
		{"A redirect away", "outside of the hosts: " + away},
		{"Open a window", ""},
		{"Ask", "a dialog was dismissed: Really?"},
		{"A dialog", "a dialog was dismissed: hello"},
		{"A download", "a download was refused: pot.bin"},
	} {
		now := r.do(tt.label, "")
		if now.Title != "Elsewhere" || !strings.Contains(strings.Join(now.Faults, "\n"), tt.fault) {
			t.Errorf("%s: at %q, faults %q", tt.label, now.Title, now.Faults)
		}
	}
	if now := r.do("A popup here", ""); now.Title != "Imprint" {
		t.Errorf("a link to a window of its own leads to %q", now.Title)
	}
	for _, bad := range []string{elsewhere.URL + "/", "file:///etc/passwd", "chrome://version", "data:text/html,hi", "about:blank", "javascript:1", ""} {
		var fault *devices.Error
		if err := r.Act(t.Context(), devices.Action{Kind: devices.Navigate, Target: bad}, ""); !errors.As(err, &fault) || fault.Crash {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if s := r.see(); s.Title != "Imprint" {
		t.Errorf("at %q", s.Title)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(hits) != 0 {
		t.Errorf("reached: %q", hits)
	}
	if passed, shut := chromium.Counts(r.Device); passed == 0 || shut == 0 {
		t.Errorf("the gate let %d pass and shut out %d: it is not the way out", passed, shut)
	}
}

// The page that tries to reach elsewhere does reach it where it may.
func TestElsewhereIsReachable(t *testing.T) {
	installed(t)
	hits := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { hits <- q.URL.Path }))
	defer elsewhere.Close()
	srv := httptest.NewServer(&devicetest.Shop{Elsewhere: elsewhere.URL})
	defer srv.Close()
	var list []string
	for _, address := range []string{srv.URL, elsewhere.URL} {
		host, _ := devices.HostOf(address)
		list = append(list, host)
	}
	hosts, err := devices.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	d, err := chromium.Browser{}.Open(t.Context(), devices.Spec{URL: srv.URL + "/elsewhere", Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Starter().Launch(t.Context()); err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{"/img": true, "/frame": true, "/css": true, "/script": true, "/fetch": true, "/socket": true, "/beacon": true, "/form": true, "/worker": true}
	for len(missing) > 0 { // until the time limit of the test
		select {
		case path := <-hits:
			delete(missing, path)
		case <-t.Context().Done():
			t.Fatalf("not reached: %v", missing)
		}
	}
}

// A browser that is killed is a crash that Restart mends.
func TestCrash(t *testing.T) {
	r := explore(t, new(devicetest.Shop)).start()
	if err := r.Act(t.Context(), devices.Action{Kind: devices.Navigate, Target: r.url + "/order"}, ""); err != nil {
		t.Fatal(err)
	}
	chromium.Kill(r.Device)
	var fault *devices.Error
	if _, err := r.Perceive(t.Context()); !errors.As(err, &fault) || !fault.Crash {
		t.Fatalf("perceived after a crash: %v", err)
	}
	if err := r.WaitIdle(t.Context()); !errors.As(err, &fault) || !fault.Crash {
		t.Errorf("idle after a crash: %v", err)
	}
	if err := devices.Restart(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if s := r.idle(); s.Title != "Teapots" {
		t.Errorf("at %q", s.Title)
	}
}

func TestCanceled(t *testing.T) {
	r := explore(t, new(devicetest.Shop)).start()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Perceive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if s := r.see(); s.Title != "Teapots" { // it is alive
		t.Errorf("at %q", s.Title)
	}
}

// What the scripts of a page do to the world does not reach the explorer.
func TestHostilePage(t *testing.T) {
	r := explore(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte(`<title>` + strings.Repeat("T\u202e", 500) + `</title><link rel="icon" href="data:,">
<script>JSON.stringify = () => "gotcha"; Array.prototype.map = () => { throw 1 }; document.querySelectorAll = () => { throw 2 }
addEventListener("beforeunload", e => { e.preventDefault(); e.returnValue = "stay" }); throw new Error("broken on purpose")</script>
<form name="body"><input name="body" placeholder="a field"><input name="querySelectorAll"></form>
<a href="/two?token=secret#x">on</a><div hidden><a href="/hidden">hidden</a></div><div id="host"></div>
<script>document.getElementById("host").attachShadow({mode: "open"}).innerHTML = '<button type="button" aria-expanded="false">inside</button>'
for (let i = 0; i < 1000; i++) document.write('<a href="/many/' + i + '">many ' + i + '</a>')</script>`))
	})).start()
	s := r.see()
	if len(s.Title) > devices.MaxLabel || strings.Contains(s.Title, "\u202e") || len(s.Actions) != devices.MaxActions || len(s.Text) > devices.MaxText {
		t.Errorf("title %q, %d actions", s.Title, len(s.Actions))
	}
	for _, want := range []string{"type a field", "click on"} {
		if !slices.Contains(labels(s), want) {
			t.Errorf("no %q in %q", want, labels(s)[:5])
		}
	}
	if slices.Contains(labels(s), "click hidden") || !slices.Contains(s.Faults, "a script failed: Error: broken on purpose") {
		t.Errorf("faults %q", s.Faults)
	}
	for _, a := range s.Actions {
		if strings.Contains(a.Target, "secret") {
			t.Errorf("%+v", a)
		}
	}
	if now := r.do("on", ""); !strings.HasPrefix(now.URL, r.url+"/two") {
		t.Errorf("at %s", now.URL)
	}
}

func TestNotOpened(t *testing.T) {
	hosts, err := devices.ParseHosts([]string{"127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	var fault *devices.Error
	for _, tt := range []struct {
		name    string
		browser chromium.Browser
		spec    devices.Spec
		want    string
	}{
		{"no browser", chromium.Browser{Path: "/nonexistent/chromium"}, devices.Spec{URL: "http://127.0.0.1:9/", Hosts: hosts}, "install the package chromium"},
		{"no host", chromium.Browser{Path: os.Args[0]}, devices.Spec{URL: "http://127.0.0.1:9/"}, "name the hosts"},
		{"another host", chromium.Browser{Path: os.Args[0]}, devices.Spec{URL: "http://u:secret@127.0.0.2:9/?secret", Hosts: hosts}, "http://127.0.0.2:9/ is not within 127.0.0.1:9"},
	} {
		if _, err := tt.browser.Open(t.Context(), tt.spec); !errors.As(err, &fault) || !strings.Contains(fault.Text, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (chromium.Browser{}).Find(); !errors.As(err, &fault) || !strings.Contains(fault.Text, "apt-get install chromium") {
		t.Errorf("%v", err)
	}
}

// What does not run, and what is no browser, are told in a sentence.
func TestNothingThere(t *testing.T) {
	installed(t)
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	d := open(t, srv.URL+"/")
	var fault *devices.Error
	if err := d.Starter().Launch(t.Context()); !errors.As(err, &fault) || fault.Crash || !strings.Contains(fault.Text, "cannot be loaded") {
		t.Errorf("%v", err)
	}
	hosts, _ := devices.ParseHosts([]string{"127.0.0.1:9"})
	program := filepath.Join(t.TempDir(), "chromium")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	bad, err := chromium.Browser{Path: program}.Open(t.Context(), devices.Spec{URL: "http://127.0.0.1:9/", Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if err := bad.Starter().Launch(t.Context()); !errors.As(err, &fault) || !strings.Contains(fault.Text, "the browser does not start") {
		t.Errorf("%v", err)
	}
}
