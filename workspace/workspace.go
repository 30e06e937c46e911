// Package workspace is where the tools of an agent act: files, and commands that run
// isolated from the machine of claybot.
//
// It holds the contract, the Manager that opens and removes workspaces, and what all
// implementations share. Nothing in a workspace is trusted, and nothing in it has a
// network unless its Spec says so.
//
// This package must not import an implementation; the suite that each of them
// passes is workspace/workspacetest.
package workspace

import (
	"context"
	"io"
	"time"
)

// A Workspace is an open workspace. It is safe for concurrent use. Its errors are
// *Error, or the cause of the end of ctx.
type Workspace interface {
	// Place says where things run. It changes with everything that matters for the
	// approval of an action: provider, image, directory, network.
	Place() string
	// Exec runs a command and returns its result, also for a non-zero exit code. When
	// ctx ends or a limit passes, the command and all that it started end within 2 s.
	Exec(ctx context.Context, c Command) (Result, error)
	// Pipe starts a command with its input and output connected. The end of ctx ends it.
	Pipe(ctx context.Context, c Command) (Process, error)
	// ReadFile reads a regular file; TooBig beyond max bytes.
	ReadFile(ctx context.Context, path string, max int64) ([]byte, error)
	// WriteFile makes or replaces a file whole or not at all, with the folders it
	// needs.
	WriteFile(ctx context.Context, path string, content []byte) error
	// List lists the files below a folder in the order of their paths, with
	// folders, at most max of them; more says that there are others.
	List(ctx context.Context, dir string, max int) (files []File, more bool, err error)
}

// A Remover is a Workspace that can delete files even when its disk limit keeps
// commands from running. The workspaces of all providers have it.
type Remover interface {
	// Remove deletes a file, or a folder with everything below it. It is no error
	// if there is none.
	Remove(ctx context.Context, path string) error
}

// Paths are slash-separated and below the directory of the workspace, whether
// they are written relative to it or with it in front. What leads out of it, also
// by a link, is an error of code Outside.

// A Command is what runs. Either Shell or Args is set.
type Command struct {
	Shell string   // run by /bin/sh after what a login reads, see Argv
	Args  []string // run as it is
	Dir   string   // below the workspace; empty: its directory
	// Env is added to the environment of the workspace, for this command alone.
	Env []Var
	// Wall ends a command that runs longer, Idle one that writes nothing for so
	// long. 0 is no limit.
	Wall, Idle time.Duration
	// Stdin is what it reads; none: an end at once.
	Stdin []byte
}

// A Var is one variable of an environment.
type Var struct{ Name, Value string }

// A Result is how a command ended.
type Result struct {
	ExitCode int
	// Output is the end of what it wrote to stdout and stderr, in the order in
	// which that came: at most MaxTail characters, valid text without control
	// sequences.
	Output string
	// Bytes is how much it wrote. Whole is the file of the workspace that has all
	// of it, at most MaxWhole bytes, when Output is a part.
	Bytes int64
	Whole string
	// Reason says in words why it ended, when the exit code alone does not: a
	// signal, no memory.
	Reason string
	Took   time.Duration
}

// The limits of output.
const (
	MaxTail  = 10_000   // characters
	MaxWhole = 64 << 20 // bytes
)

// A Process is a command that is spoken with. Close ends it with all that it
// started; Wait returns how it ended.
type Process interface {
	io.ReadWriteCloser                     // its stdin and stdout
	CloseWrite() error                     // ends its stdin
	Stderr() string                        // the end of what it wrote there, at most MaxTail characters, clean
	Wait(ctx context.Context) (int, error) // its exit code
}

// A File is one file or folder in a list.
type File struct {
	Path string // relative to the directory of the workspace
	Size int64
	Dir  bool
	Link bool // a link, where links are listed
	At   time.Time
}

// A Provider makes workspaces of one kind. It is safe for concurrent use.
type Provider interface {
	// Name is the word of configurations for it: docker, local.
	Name() string
	// Open finds or creates the workspace of a key, as s describes it. It replaces one
	// that differs and keeps the data.
	Open(ctx context.Context, key Key, s Spec) (Workspace, error)
	// Remove deletes the workspace of a key, and its data if data is set. It is no
	// error if there is none.
	Remove(ctx context.Context, key Key, data bool) error
	// List lists all that this installation made, running or not.
	List(ctx context.Context) ([]Info, error)
	// Check returns nil if the provider works. The text of the error has the next step.
	Check(ctx context.Context) error
}

// A Key says whose a workspace is: "agent/<id>", "thread/<agent>/<thread>",
// "owner/<owner>", "mcp/<server>", "browser/<agent>".
type Key string

// An Info is one workspace in a list.
type Info struct {
	Key      Key       `json:"key"`
	Provider string    `json:"provider"`
	ID       string    `json:"id"` // of the provider
	Image    string    `json:"image,omitempty"`
	Platform string    `json:"platform,omitempty"`
	State    string    `json:"state"` // in the provider's words; idle: its data alone is there
	Made     time.Time `json:"made,omitzero"`
}

// A Spec is what a workspace is to be like. The zero value of a field means its
// default, which a Provider knows.
type Spec struct {
	Image         string
	Platform      string // linux/amd64, linux/arm64, or empty: whatever there is
	InitialScript string // runs once in a new workspace, before anything else
	Env           []Var
	User          string // uid:gid
	CPUs          float64
	Memory        int64 // bytes
	PIDs          int64
	Disk          int64 // bytes of the workspace's files
	Network       Network
	Volumes       []Volume
	Runtime       string
	// Docker gives the workspace a Docker engine of its own, in a container
	// beside it: the image of that container.
	Docker string
	// KeepOnTimeout: a command that passed a limit ends alone; otherwise the whole
	// workspace is stopped, and started again by the next command.
	KeepOnTimeout bool
	// Unsafe names the protections that the operator gave up; see the provider.
	Unsafe []string
}

// A Network says what a workspace reaches.
type Network struct {
	Mode  string   // one of the modes; empty: none
	Allow []string // host, *.host, or host:port, in mode allow
}

// The modes of a Network.
const (
	NetworkNone  = "none"
	NetworkAllow = "allow" // the hosts of Allow, through claybot
	NetworkFull  = "full"  // public addresses at every port, through claybot
	// NetworkHostUnsafe is what the machine reaches, by every protocol: claybot neither
	// sees nor limits it.
	NetworkHostUnsafe = "host-unsafe"
)

// Proxied reports that what is reached is reached through claybot.
func (n Network) Proxied() bool { return n.Mode == NetworkAllow || n.Mode == NetworkFull }

// Web reports that every public address of the web is reached.
func (n Network) Web() bool { return n.Mode == NetworkFull || n.Mode == NetworkHostUnsafe }

// A Volume is data that outlives the workspace and may be shared.
type Volume struct {
	Name string
	Path string // absolute, in the workspace
	Read bool   // cannot be written
}

// Code says what kind an Error is.
type Code string

// The codes of errors.
const (
	Unavailable Code = "unavailable" // no engine, no image: nothing was started
	Refused     Code = "refused"     // a Spec that cannot be, or must not
	WallLimit   Code = "timeout"
	IdleLimit   Code = "idle_timeout"
	DiskLimit   Code = "disk_full"
	Gone        Code = "gone" // the workspace ended meanwhile; what the command did is unknown
	NotFound    Code = "not_found"
	Outside     Code = "outside" // the path leads out of the workspace
	TooBig      Code = "too_big"
	Failed      Code = "failed"
)

// An Error is what a workspace could not do. Text is for models and people, with
// the next step where there is one, and without secrets.
type Error struct {
	Code Code
	Text string
	// Output is the end of what a command wrote before it was ended, as in Result.
	Output string
	Err    error // for the operator
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
