package scripted_test

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"strings"
	"testing"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/scripted"
)

func open(t *testing.T, a *scripted.App, hosts ...string) devices.Device {
	t.Helper()
	allowed, err := devices.ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	d, err := a.Open(t.Context(), devices.Spec{URL: scripted.DemoURL, Hosts: allowed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func start(t *testing.T, d devices.Device) {
	t.Helper()
	for _, call := range []func(context.Context) error{d.Starter().Ensure, d.Starter().Provision, d.Starter().Launch, d.WaitIdle} {
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func see(t *testing.T, d devices.Device) devices.Screen {
	t.Helper()
	s, err := d.Perceive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func act(t *testing.T, d devices.Device, label string) {
	t.Helper()
	for _, a := range see(t, d).Actions {
		if a.Label == label {
			if err := d.Act(t.Context(), a, ""); err != nil {
				t.Fatalf("%s: %v", label, err)
			}
			return
		}
	}
	t.Fatalf("no %q on the screen", label)
}

func TestDemo(t *testing.T) {
	app := scripted.Demo()
	d := open(t, app, "shop.test")
	start(t, d)
	act(t, d, "Order")
	act(t, d, "Send the order") // the fields are empty
	if got := see(t, d).ID; got != "order" {
		t.Fatalf("at %s", got)
	}
	act(t, d, "Name")
	act(t, d, "E-mail")
	act(t, d, "Send the order")
	if got := see(t, d); got.ID != "thanks" || got.URL != "http://shop.test/thanks" {
		t.Errorf("at %+v", got)
	}
	if n := app.Effects()["order/Send the order"]; n != 1 || app.Acts("order", "Send the order") != 2 {
		t.Errorf("sent %d times", n)
	}
	act(t, d, "Home")
	act(t, d, "News")
	if s := see(t, d); len(s.Faults) != 1 || !strings.Contains(s.Faults[0], "500") {
		t.Errorf("faults %q", s.Faults)
	}
	if s := see(t, d); len(s.Faults) != 0 {
		t.Errorf("told twice: %q", s.Faults)
	}
	if err := devices.Restart(t.Context(), d); err != nil || see(t, d).ID != "home" {
		t.Errorf("restart: %v", err)
	}
	img, err := png.Decode(bytes.NewReader(see(t, d).PNG))
	if err != nil || img.Bounds().Dx() != 240 {
		t.Errorf("picture: %v", err)
	}
}

func TestNavigate(t *testing.T) {
	d := open(t, scripted.Demo(), "shop.test")
	start(t, d)
	to := func(address string) error {
		return d.Act(t.Context(), devices.Action{Kind: devices.Navigate, Target: address}, "")
	}
	if err := to("http://shop.test/pot"); err != nil || see(t, d).ID != "pot" {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "http://shop.test/none", "http://other.test/", "file:///x"} {
		if err := to(bad); err == nil {
			t.Errorf("%q is opened", bad)
		}
	}
}

func TestBack(t *testing.T) {
	app := &scripted.App{Start: "a", Screens: map[string]scripted.Screen{
		"a": {Steps: []scripted.Step{{Action: devices.Action{Kind: devices.Click, Label: "on"}, To: "b"}}},
		"b": {Steps: []scripted.Step{{Action: devices.Action{Kind: devices.Back, Label: "back"}}}},
	}}
	d := open(t, app)
	start(t, d)
	act(t, d, "on")
	act(t, d, "back")
	if got := see(t, d).ID; got != "a" {
		t.Errorf("at %s", got)
	}
}

func TestTrouble(t *testing.T) {
	app := &scripted.App{Start: "a", LaunchCrashes: 1, Screens: map[string]scripted.Screen{
		"a": {Steps: []scripted.Step{
			{Action: devices.Action{Label: "fall", Kind: devices.Click}, Crashes: true},
			{Action: devices.Action{Label: "stumble", Kind: devices.Click}, Fails: "the floor is wet"},
		}},
	}}
	d := open(t, app)
	var fault *devices.Error
	if err := d.Starter().Launch(t.Context()); !errors.As(err, &fault) || fault.Crash {
		t.Errorf("launched without an application: %v", err)
	}
	d.Starter().Provision(t.Context())
	if err := d.Starter().Launch(t.Context()); !errors.As(err, &fault) || !fault.Crash {
		t.Errorf("the first launch: %v", err)
	}
	start(t, d)
	if err := d.Act(t.Context(), devices.Action{ID: "none"}, ""); !errors.As(err, &fault) || fault.Crash {
		t.Errorf("an unknown action: %v", err)
	}
	if err := d.Act(t.Context(), devices.Action{ID: "stumble"}, ""); !errors.As(err, &fault) || fault.Text != "the floor is wet" {
		t.Errorf("a failing action: %v", err)
	}
	if err := d.Act(t.Context(), devices.Action{ID: "fall"}, ""); !errors.As(err, &fault) || !fault.Crash {
		t.Errorf("a crashing action: %v", err)
	}
	if _, err := d.Perceive(t.Context()); !errors.As(err, &fault) || !fault.Crash {
		t.Errorf("perceived after a crash: %v", err)
	}
	if err := devices.Restart(t.Context(), d); err != nil {
		t.Errorf("restart: %v", err)
	}
	if app.Acts("a", "fall") != 1 || app.Devices() != 1 {
		t.Error("not counted")
	}
	d.Close()
	d.Close()
	if err := d.Starter().Ensure(t.Context()); err == nil || app.Devices() != 0 {
		t.Error("closed devices work")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := app.Open(ended, devices.Spec{}); !errors.Is(err, context.Canceled) {
		t.Errorf("opened: %v", err)
	}
}

func TestBadApps(t *testing.T) {
	step := func(label, to string) scripted.Step {
		return scripted.Step{Action: devices.Action{Label: label}, To: to}
	}
	for name, a := range map[string]*scripted.App{
		"empty":      {},
		"no start":   {Start: "b", Screens: map[string]scripted.Screen{"a": {}}},
		"leads away": {Start: "a", Screens: map[string]scripted.Screen{"a": {Steps: []scripted.Step{step("x", "b")}}}},
		"twice":      {Start: "a", Screens: map[string]scripted.Screen{"a": {Steps: []scripted.Step{step("x", ""), step("x", "")}}}},
		"no name":    {Start: "a", Screens: map[string]scripted.Screen{"a": {Steps: []scripted.Step{step("", "")}}}},
	} {
		if _, err := a.Open(t.Context(), devices.Spec{}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if err := scripted.Demo().Check(); err != nil {
		t.Error(err)
	}
}
