// Package scripted is a device whose application is written down as a graph of
// screens: for tests of explorers, and for demonstrations where no browser is
// installed.
//
// It does the same each time. An application counts what is done to it across
// all its devices, as a server would; where a device is, and what was typed into
// it, is gone with the device.
//
// Only cmd imports it.
package scripted

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/claybot/claybot/devices"
)

// An App is an application. What it is made of must not be changed any more once
// it is opened. It is safe for concurrent use.
type App struct {
	Start   string            // the first screen
	Screens map[string]Screen // by name, which is their ID
	// LaunchCrashes is how many launches crash before one works.
	LaunchCrashes int

	mu       sync.Mutex
	launches int
	acts     map[string]int // by "screen/action"
	effects  map[string]int // of those that are marked Once, where they worked
	open     int
	pictures map[string][]byte
}

// A Screen is one screen of an App.
type Screen struct {
	Title, URL, Text string
	Faults           []string // told whenever it is arrived at
	Steps            []Step
}

// A Step is something that can be done on a screen. An empty ID of its action is
// the label.
type Step struct {
	devices.Action
	To string // the screen it leads to; empty: it stays
	// Needs are actions of the same screen without which it stays, too: fields
	// that must be filled.
	Needs   []string
	Fails   string // the error it ends with, always
	Crashes bool
}

// Check reports what is wrong with the graph of an application.
func (a *App) Check() error {
	if _, ok := a.Screens[a.Start]; !ok {
		return fmt.Errorf("scripted app: it starts at %q, which is not a screen", a.Start)
	}
	for name, screen := range a.Screens {
		ids := make(map[string]bool)
		for _, s := range screen.Steps {
			id := idOf(s)
			if _, ok := a.Screens[s.To]; s.To != "" && !ok {
				return fmt.Errorf("scripted app: %s of %s leads to %q, which is not a screen", id, name, s.To)
			}
			if id == "" || ids[id] {
				return fmt.Errorf("scripted app: %s has two actions %q, or one without a name", name, id)
			}
			ids[id] = true
		}
	}
	return nil
}

// Open opens a device with the application; it is a devices.Open. The Spec's URL
// must be within its hosts where it has any.
func (a *App) Open(ctx context.Context, s devices.Spec) (devices.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := a.Check(); err != nil {
		return nil, &devices.Error{Text: err.Error(), Err: err}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open++
	return &device{app: a, spec: s}, nil
}

// Effects are how often each action that is marked Once was done and worked, by
// "screen/action", over all devices.
func (a *App) Effects() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.effects)
}

// Acts is how often an action was done, over all devices.
func (a *App) Acts(screen, action string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acts[screen+"/"+action]
}

// Devices is how many devices are open.
func (a *App) Devices() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

func (a *App) count(screen string, s Step, works bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.acts == nil {
		a.acts, a.effects = make(map[string]int), make(map[string]int)
	}
	key := screen + "/" + idOf(s)
	a.acts[key]++
	if s.Once && works {
		a.effects[key]++
	}
}

// picture is the picture of a screen, drawn once.
func (a *App) picture(screen string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pictures == nil {
		a.pictures = make(map[string][]byte)
	}
	if a.pictures[screen] == nil {
		a.pictures[screen] = picture(a.Screens[screen])
	}
	return a.pictures[screen]
}

func (a *App) launch() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.launches++
	return a.launches > a.LaunchCrashes
}

func idOf(s Step) string {
	if s.ID == "" {
		return s.Label
	}
	return s.ID
}

// A device is one walk through the application.
type device struct {
	app         *App
	spec        devices.Spec
	provisioned bool
	at          string // the screen; empty: it does not run
	done        []string
	past        []string // for going back
	faults      []string
	closed      bool
}

var _ devices.Device = (*device)(nil)

func (d *device) Starter() devices.Starter { return d }

func (d *device) Ensure(ctx context.Context) error {
	if d.closed {
		return devices.Failed("the device is closed")
	}
	return ctx.Err()
}

func (d *device) Provision(ctx context.Context) error {
	d.provisioned, d.at = true, ""
	return d.Ensure(ctx)
}

func (d *device) Launch(ctx context.Context) error {
	if err := d.Ensure(ctx); err != nil {
		return err
	}
	switch {
	case !d.provisioned:
		return devices.Failed("there is no application on the device yet")
	case d.at != "":
		return nil // it runs
	case !d.app.launch():
		return devices.Crashed("the application ended while it began")
	}
	d.past = nil
	d.arrive(d.app.Start)
	return nil
}

func (d *device) WaitIdle(ctx context.Context) error { return d.running(ctx) }

func (d *device) running(ctx context.Context) error {
	if err := d.Ensure(ctx); err != nil {
		return err
	}
	if d.at == "" {
		return devices.Crashed("the application does not run")
	}
	return nil
}

func (d *device) arrive(screen string) {
	d.at, d.done = screen, nil
	d.faults = append(d.faults, d.app.Screens[screen].Faults...)
}

func (d *device) Perceive(ctx context.Context) (devices.Screen, error) {
	if err := d.running(ctx); err != nil {
		return devices.Screen{}, err
	}
	now := d.app.Screens[d.at]
	s := devices.Screen{ID: d.at, Title: now.Title, URL: now.URL, Text: now.Text, Faults: d.faults, PNG: d.app.picture(d.at)}
	d.faults = nil
	for _, step := range now.Steps {
		a := step.Action
		a.ID = idOf(step)
		s.Actions = append(s.Actions, a)
	}
	return devices.Bounded(s), nil
}

func (d *device) Act(ctx context.Context, a devices.Action, _ string) error {
	if err := d.running(ctx); err != nil {
		return err
	}
	if a.Kind == devices.Navigate {
		return d.navigate(a.Target)
	}
	steps := d.app.Screens[d.at].Steps
	i := slices.IndexFunc(steps, func(s Step) bool { return idOf(s) == a.ID })
	if i < 0 {
		return devices.Failed("the screen %s has no %s", d.at, a.ID)
	}
	step := steps[i]
	lacks := slices.ContainsFunc(step.Needs, func(n string) bool { return !slices.Contains(d.done, n) })
	d.app.count(d.at, step, step.Fails == "" && !step.Crashes && !lacks)
	switch {
	case step.Crashes:
		d.at = ""
		return devices.Crashed("the application ended at %s", step.Label)
	case step.Fails != "":
		return devices.Failed("%s", step.Fails)
	case step.Kind == devices.Back:
		if len(d.past) > 0 {
			last := d.past[len(d.past)-1]
			d.past = d.past[:len(d.past)-1]
			d.arrive(last)
		}
		return nil
	case step.To == "" || step.To == d.at || lacks:
		d.done = append(d.done, idOf(step))
		return nil
	}
	d.past = append(d.past, d.at)
	d.arrive(step.To)
	return nil
}

func (d *device) navigate(address string) error {
	if d.spec.Hosts.Len() > 0 && !d.spec.Hosts.AllowsURL(address) {
		return devices.Failed("%s is not within %s", devices.Plain(address), d.spec.Hosts)
	}
	for _, name := range slices.Sorted(maps.Keys(d.app.Screens)) {
		if address != "" && d.app.Screens[name].URL == address {
			d.past = append(d.past, d.at)
			d.arrive(name)
			return nil
		}
	}
	return devices.Failed("no screen is at %q", address)
}

func (d *device) Close() error {
	if !d.closed {
		d.closed, d.at = true, ""
		d.app.mu.Lock()
		defer d.app.mu.Unlock()
		d.app.open--
	}
	return nil
}
