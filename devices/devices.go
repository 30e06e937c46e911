// Package devices is what an explorer explores: an application on a device, such
// as a web application in a browser, seen as screens with actions.
//
// It is the contract alone. A device is opened for one walk and is used by one
// goroutine at a time. What a screen says is untrusted content: it is data, and
// its sizes are bounded here, by the limits of a Screen.
//
// This package must not import an implementation of a device, nor know the purpose
// of a walk.
package devices

import (
	"context"
	"fmt"
)

// A Device has one application. All calls end when ctx does, or after a time limit of
// the device. Their errors are *Error, unless ctx has ended.
type Device interface {
	// Starter takes the device to the first screen.
	Starter() Starter
	// WaitIdle waits until the application has settled, or for a few seconds if it
	// never does.
	WaitIdle(ctx context.Context) error
	// Perceive returns what is on the screen now.
	Perceive(ctx context.Context) (Screen, error)
	// Act does something to the screen. value is what to type or select; other kinds
	// of actions ignore it. An action that the screen does not have is an error. Call
	// WaitIdle, then Perceive, to see the result.
	Act(ctx context.Context, a Action, value string) error
	// Close frees everything. A second call does nothing.
	Close() error
}

// A Starter takes a device to the first screen by three calls in this order. Each may
// be called again.
type Starter interface {
	// Ensure makes sure that the device is there.
	Ensure(ctx context.Context) error
	// Provision installs the application, with nothing left of earlier walks.
	Provision(ctx context.Context) error
	// Launch opens the first screen, or returns to an application that runs.
	Launch(ctx context.Context) error
}

// Restart throws the application away, with all that it remembers, and launches it
// again. It works after a crash, too.
func Restart(ctx context.Context, d Device) error {
	s := d.Starter()
	if err := s.Provision(ctx); err != nil {
		return err
	}
	return s.Launch(ctx)
}

// A Viewer is a Device that can show more of a screen than Perceive does.
type Viewer interface {
	// Text is the whole text of the screen, at most MaxWholeText bytes.
	Text(ctx context.Context) (string, error)
	// Picture is a PNG of the screen within MaxPNG, made smaller where it must be;
	// whole takes what can be scrolled to as well, as far as that is reasonable.
	Picture(ctx context.Context, whole bool) ([]byte, error)
}

// Open opens a device for an application. A device that cannot be had is an
// *Error whose text says what to do about it.
type Open func(ctx context.Context, s Spec) (Device, error)

// A Spec is what is opened.
type Spec struct {
	// URL is where the application begins. It is among Hosts, or something else that
	// the device reaches by its own settings, such as a file.
	URL string
	// Hosts are all that may be reached.
	Hosts Hosts
}

// The limits of a Screen. A device keeps to them.
const (
	MaxText      = 4 << 10  // bytes of Text
	MaxWholeText = 64 << 10 // bytes of the Text of a Viewer
	MaxPNG       = 1 << 20  // bytes of PNG
	MaxActions   = 60
	MaxLabel     = 80 // bytes of a label, a title
	MaxFaults    = 10
	MaxFault     = 200 // bytes of a fault
)

// A Screen is what an application shows.
type Screen struct {
	// ID is the same whenever this screen is shown, whatever its numbers say.
	ID    string
	Title string
	URL   string // empty where screens have none
	Text  string
	// Actions are what can be done, in the order in which they are seen.
	Actions []Action
	PNG     []byte // the picture of it; nil where there is none
	// Faults are what went wrong since the last Perceive, in words: an error of a
	// server, a dialog that was dismissed, an address that was refused.
	Faults []string
}

// Kind says how something is done.
type Kind string

// The kinds of actions.
const (
	Click    Kind = "click"
	Type     Kind = "type"
	Select   Kind = "select"
	Submit   Kind = "submit" // sends the form of an action of kind Type, as Enter does; no screen lists it
	Back     Kind = "back"
	Navigate Kind = "navigate" // to the address Target; every device with addresses can do it on any screen
)

// An Action is something that can be done to a screen.
type Action struct {
	// ID is the same whenever this screen is shown.
	ID     string `json:"id"`
	Kind   Kind   `json:"kind"`
	Label  string `json:"label"`
	Target string `json:"target,omitempty"` // where a link leads, without query
	// Once marks what may change something beyond the device, such as a form that
	// is sent: it must not be repeated just to come back to a place.
	Once bool `json:"once,omitempty"`
	// Input says what a field takes, by the names of HTML: text, email, number.
	Input   string   `json:"input,omitempty"`
	Options []string `json:"options,omitempty"` // to select from
}

// An Error is what a device could not do.
type Error struct {
	// Crash: the application or the device is gone; Restart brings it back.
	Crash bool
	Text  string // for people, without secrets
	Err   error  // the cause, where there is one
}

func (e *Error) Error() string {
	if e.Crash {
		return "device crashed: " + e.Text
	}
	return "device: " + e.Text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failed makes an Error of a sentence.
func Failed(format string, args ...any) *Error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Crashed makes an Error of a device that is gone.
func Crashed(format string, args ...any) *Error {
	return &Error{Crash: true, Text: fmt.Sprintf(format, args...)}
}
