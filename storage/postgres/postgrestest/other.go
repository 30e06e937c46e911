//go:build !linux

package postgrestest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// On other systems nothing ends a server with its starter, so there is none.

type owner struct{}

func findOwner() (owner, error) {
	return owner{}, fmt.Errorf("%w: servers for tests run on Linux, not on %s", ErrNotHere, runtime.GOOS)
}

func (owner) own(*exec.Cmd)     {}
func (owner) give(string) error { return nil }

type process struct {
	pid  int
	done chan struct{}
}

func (programs) start(*os.File, string, ...string) (*process, error) { return nil, ErrNotHere }

func (*process) ended() bool                { return true }
func (*process) stop(Mode) error            { return ErrNotHere }
func (*process) freeze() error              { return ErrNotHere }
func (*process) thaw() error                { return ErrNotHere }
func (*process) kill(context.Context) error { return ErrNotHere }

type folder struct {
	path string
	log  *os.File
}

func newFolder(string, programs) (*folder, error) { return nil, ErrNotHere }
func removeStale(context.Context, string)         {}
func (*folder) tail() string                      { return "" }
func (*folder) remove() error                     { return nil }
