package browser_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/browser"
	"github.com/claybot/claybot/workspace"
)

// shop is an application without a browser.
func shop() *scripted.App {
	act := func(kind devices.Kind, label string) devices.Action { return devices.Action{Kind: kind, Label: label} }
	away := act(devices.Click, "Away")
	away.Target = "https://away.test/x"
	return &scripted.App{Start: "home", Screens: map[string]scripted.Screen{
		"home": {Title: "Home", URL: "https://shop.test/", Steps: []scripted.Step{
			{Action: act(devices.Click, "On"), To: "end"},
			{Action: act(devices.Type, "Name")},
			{Action: act(devices.Click, "Fall"), Crashes: true},
			{Action: act(devices.Click, "Stumble"), Fails: "the floor is wet"},
			{Action: away},
			{Action: devices.Action{Kind: devices.Select, Label: "Size", Options: []string{"S", "M"}}},
		}},
		"end": {Title: "End", URL: "https://shop.test/end"},
	}}
}

// A desk is the tools with scripted applications.
type desk struct {
	*testing.T
	app *scripted.App
	all *browser.Browsers
	set *tools.Set
}

func deskOf(t *testing.T, c browser.Config) *desk {
	t.Helper()
	d := &desk{T: t, app: shop()}
	if c.Open == nil {
		c.Open = func(ctx context.Context, _ tools.Env, s devices.Spec) (devices.Device, error) {
			return d.app.Open(ctx, s)
		}
	}
	d.all = browser.New(c)
	t.Cleanup(func() { _ = d.all.Close() })
	var err error
	if d.set, err = tools.NewSet(d.all.Tools()...); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) do(agent, name, args string) (string, *tools.Fault) {
	d.Helper()
	o := d.set.Do(d.Context(), envOf(agent), claybot.ToolCall{ID: "c", Name: name, Args: args})
	return o.Record.Text, o.Fault
}

func envOf(agent string) tools.Env {
	return tools.Env{Agent: claybot.Agent{ID: claybot.AgentID(agent)}, Run: "run"}
}

const home = `{"url":"https://shop.test/"}`

// must opens the shop for an agent.
func (d *desk) must(agent string) {
	d.Helper()
	if text, fault := d.do(agent, "browser_open", home); fault != nil {
		d.Fatalf("%s: %s", agent, text)
	}
}

// An idle browser is closed; a browser in use is not.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deskOf(t, browser.Config{})
		d.must("a")
		for range 5 {
			time.Sleep(4 * time.Minute)
			if text, fault := d.do("a", "browser_read", `{}`); fault != nil {
				t.Fatal(text)
			}
		}
		time.Sleep(browser.DefaultIdle + time.Second)
		synctest.Wait()
		if n := d.app.Devices(); n != 0 {
			t.Errorf("%d are open", n)
		}
		if _, fault := d.do("a", "browser_read", `{}`); fault == nil || !strings.Contains(fault.Text, "browser_open") {
			t.Errorf("%v", fault)
		}
		d.must("a")
	})
}

// A fifth browser has room when one of the four was not used for a minute.
func TestMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deskOf(t, browser.Config{})
		for i := range browser.DefaultMost {
			d.must(fmt.Sprint("agent", i))
		}
		_, fault := d.do("late", "browser_open", home)
		if fault == nil || fault.Code != "busy" || !fault.Retriable || fault.After <= 0 {
			t.Fatalf("%+v", fault)
		}
		time.Sleep(2 * time.Minute)
		if _, fault := d.do("agent0", "browser_read", `{}`); fault != nil {
			t.Fatal(fault)
		}
		d.must("late")
		if n := d.app.Devices(); n != browser.DefaultMost {
			t.Errorf("%d are open", n)
		}
		if _, fault := d.do("agent0", "browser_read", `{}`); fault != nil {
			t.Errorf("the one that was used is closed: %v", fault)
		}
	})
}

func TestKeys(t *testing.T) {
	d := deskOf(t, browser.Config{Key: func(env tools.Env) string { return string(env.Agent.ID[:1]) }})
	d.must("a1")
	if _, fault := d.do("a2", "browser_read", `{}`); fault != nil {
		t.Errorf("the same key: %v", fault)
	}
	if _, fault := d.do("b1", "browser_read", `{}`); fault == nil {
		t.Error("another key sees the page")
	}
	if err := d.all.Forget(t.Context(), "a"); err != nil || d.app.Devices() != 0 {
		t.Errorf("%d are open, %v", d.app.Devices(), err)
	}
	if err := d.all.Forget(t.Context(), "a"); err != nil {
		t.Errorf("forgotten again: %v", err)
	}
	if text, fault := d.do("a1", "browser_close", `{}`); fault != nil || text != "no browser was open" {
		t.Errorf("%s, %v", text, fault)
	}
}

// Many calls at once open one browser and use it one after another.
func TestAtOnce(t *testing.T) {
	d := deskOf(t, browser.Config{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if text, fault := d.do("a", "browser_open", home); fault != nil {
				t.Error(text)
			}
		})
	}
	all.Wait()
	if n := d.app.Devices(); n != 1 {
		t.Errorf("%d are open", n)
	}
	if err := d.all.Close(); err != nil {
		t.Fatal(err)
	}
	if _, fault := d.do("a", "browser_open", home); fault == nil || d.app.Devices() != 0 {
		t.Errorf("a browser is opened at the end: %v", fault)
	}
}

func TestFaults(t *testing.T) {
	d := deskOf(t, browser.Config{})
	d.must("a")
	for _, tt := range []struct{ name, args, code, want string }{
		{"browser_click", `{"action":4}`, "browser", "the floor is wet"},
		{"browser_click", `{"action":2}`, tools.FaultArguments, "use browser_type"},
		{"browser_click", `{"action":7}`, tools.FaultArguments, "1 to 6"},
		{"browser_type", `{"field":1,"text":"x"}`, tools.FaultArguments, "use browser_click"},
		{"browser_type", `{"field":6,"text":"M","submit":true}`, tools.FaultArguments, "button of the form"},
		{"browser_type", `{"field":2,"text":"` + strings.Repeat("x", 20_000) + `"}`, tools.FaultArguments, "bytes"},
		{"browser_open", `{"url":" "}`, tools.FaultArguments, "want an address"},
		{"browser_open", `{}`, tools.FaultArguments, "url"},
		{"browser_screenshot", `{}`, tools.FaultUnknown, "unknown tool"},
		{"browser_click", `{"action":3}`, "crashed", "browser_open"},
		{"browser_read", `{}`, "browser", "no page is open"},
	} {
		if _, fault := d.do("a", tt.name, tt.args); fault == nil || fault.Code != tt.code || !strings.Contains(fault.Text, tt.want) {
			t.Errorf("%s %.60s: %+v", tt.name, tt.args, fault)
		}
	}
	if n := d.app.Devices(); n != 0 {
		t.Errorf("%d are open after a crash", n)
	}
	text, fault := d.do("a", "browser_open", home)
	if fault != nil || !strings.Contains(text, "1. click On\n2. field Name\n") || !strings.Contains(text, "6. choice Size: S | M") {
		t.Errorf("%s, %v", text, fault)
	}
}

// What cannot be opened leaves nothing, and says why.
func TestNotOpened(t *testing.T) {
	var err error
	d := deskOf(t, browser.Config{Open: func(context.Context, tools.Env, devices.Spec) (devices.Device, error) { return nil, err }})
	for _, tt := range []struct {
		err  error
		code string
	}{
		{&workspace.Error{Code: workspace.Unavailable, Text: "no engine; start Docker"}, "unavailable"},
		{devices.Failed("no network; allow hosts"), "browser"},
		{errors.New("something else"), tools.FaultFailed},
	} {
		err = tt.err
		if _, fault := d.do("a", "browser_open", home); fault == nil || fault.Code != tt.code {
			t.Errorf("%v: %+v", tt.err, fault)
		}
	}
	d = deskOf(t, browser.Config{})
	d.app.LaunchCrashes = 1
	if _, fault := d.do("a", "browser_open", home); fault == nil || d.app.Devices() != 0 {
		t.Errorf("%v, %d are open", fault, d.app.Devices())
	}
	d.must("a")
}

// Rules are asked about the host of an address, and of where a link leads.
func TestListed(t *testing.T) {
	d := deskOf(t, browser.Config{Listed: func(_ tools.Env, address string) bool {
		host, err := egress.HostOf(address)
		return err == nil && host == "shop.test"
	}})
	listed := func(name, args string) bool {
		spec, _ := d.set.Spec(name)
		return spec.Class == tools.Outward && spec.Listed(envOf("a"), []byte(args))
	}
	for address, want := range map[string]bool{
		"https://shop.test/x": true, "https://SHOP.test.:443/": true, "http://other.test/": false, "https://shop.test:8443/": false,
		"file:x.html": true, "data:text/html,x": true, "javascript:x": false, "": false, "http://u:p@shop.test/": false, "%zz": false,
	} {
		if got := listed("browser_open", `{"url":"`+address+`"}`); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	if !listed("browser_click", `{"action":1}`) {
		t.Error("a click without a page asks")
	}
	d.must("a")
	for args, want := range map[string]bool{`{"action":1}`: true, `{"action":5}`: false, `{"action":99}`: true, `{"action":0}`: true, `{"action":"x"}`: false} {
		if got := listed("browser_click", args); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
	spec, _ := d.set.Spec("browser_open")
	for address, want := range map[string]string{"https://Shop.test/x?y": "shop.test", "file:x": "file", "data:,x": "data", "": ""} {
		if got := spec.Subject([]byte(`{"url":"` + address + `"}`)); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
	for name, tests := range map[string]map[string]string{
		"browser_click": {`{"action":0}`: "shop.test: back to the page before", `{"action":99}`: "", `{"action":-1}`: "", `{"action":"x"}`: ""},
		"browser_type":  {`{"field":0,"text":"x"}`: "", `{"field":99,"text":"x"}`: ""},
	} {
		spec, _ := d.set.Spec(name)
		for args, want := range tests {
			if got := spec.SubjectIn(envOf("a"), []byte(args)); got != want {
				t.Errorf("%s %s: %q, want %q", name, args, got, want)
			}
		}
		for n := 1; n <= 5; n++ {
			t.Log(n, spec.SubjectIn(envOf("a"), fmt.Appendf(nil, `{"action":%d,"field":%d,"submit":true}`, n, n)))
		}
		if got := spec.SubjectIn(envOf("nobody"), []byte(`{"action":1,"field":1}`)); got != "" {
			t.Errorf("without a browser: %q", got)
		}
	}
	spec, _ = d.set.Spec("browser_type")
	wrote := envOf("a")
	wrote.Wrote = func(string) bool { return true }
	only := deskOf(t, browser.Config{Listed: func(env tools.Env, address string) bool { return env.Wrote != nil && env.Wrote(address) }})
	only.must("a")
	for name, want := range map[string]bool{"browser_click": true, "browser_type": false} {
		spec, _ := only.set.Spec(name)
		if got := spec.Listed(wrote, []byte(`{"action":1,"field":2,"text":"x"}`)); got != want {
			t.Errorf("%s on a page that the person wrote: listed %v", name, got)
		}
	}
	strict := deskOf(t, browser.Config{})
	strict.must("a")
	spec, _ = strict.set.Spec("browser_type")
	if spec.Listed(envOf("a"), []byte(`{"field":2,"text":"x"}`)) {
		t.Error("without a list, a page of the web is listed")
	}
}
