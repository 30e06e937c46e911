// Package documents holds the file tools of an agent: ls, read_file, write_file,
// edit_file, apply_patch, glob, grep. They work on a Backend, of which there are three: the
// agent's own documents, those shared by the agents of an owner, and a folder of
// the machine.
//
// The tools behave alike on each, to the word: files hold text, folders are
// there as long as they hold a file, paths are relative and cannot leave, and an
// error begins with its Code. Of two agents that write one shared file at the
// same time, the last one wins.
//
// Only cmd imports it.
package documents

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// Limits of a backend.
const (
	// MaxFile is the most bytes of one file.
	MaxFile = 1 << 20
	// MaxScope is the most bytes of all files together.
	MaxScope = 16 << 20
	// MaxFiles is how many files there may be.
	MaxFiles = 5000
)

// A Code says what kind of error it is.
type Code string

// The codes of errors.
const (
	NoEntry     Code = "ENOENT"  // no such file or folder
	IsFolder    Code = "EISDIR"  // a folder where a file is wanted
	NotFolder   Code = "ENOTDIR" // a file where a folder is wanted
	Invalid     Code = "EINVAL"  // a path, an argument or a content that cannot be
	Denied      Code = "EACCES"  // outside of the directories that the agent may use
	OverQuota   Code = "EQUOTA"  // a limit is reached
	Unavailable Code = "EIO"     // the backend failed
)

// An Error is what a tool reports: a code and a sentence for the model. Cause is
// for the operator and no part of the text; nil for mistakes of the caller.
type Error struct {
	Code  Code
	Text  string
	Cause error
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Text }
func (e *Error) Unwrap() error { return e.Cause }

func fail(code Code, format string, args ...any) error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

func broken(doing string, err error) error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, storage.ErrFull):
		return &Error{OverQuota, "there is no space left to write", err}
	}
	return &Error{Unavailable, doing + " failed; try again later", err}
}

// A Backend keeps text files. Paths are as cleaned by the tools: relative,
// slashes between the parts, no part empty, "." or "..". All errors are *Error,
// or the end of ctx.
type Backend interface {
	// Read returns the content of a file, which need not be text.
	Read(ctx context.Context, path string) (string, error)
	// Write makes or replaces a file with the folders it needs, whole or not
	// at all; twice is once. It keeps to MaxScope and MaxFiles.
	Write(ctx context.Context, path, text string) error
	// List returns all files below a folder in the order of their paths, or
	// those of all folders when it is empty. NoEntry when there is no such
	// folder, NotFolder when it is a file, OverQuota when they are more than
	// MaxFiles.
	List(ctx context.Context, folder string) ([]File, error)
	// Remove takes a file away, and the folders that are empty then; one that is
	// not there is removed already.
	Remove(ctx context.Context, path string) error
	// aside is a place beside the files that the tools do not see, for what an
	// agent's runs replace; false when nothing can be kept for it.
	aside(agent claybot.AgentID) (Backend, bool)
	// taint are the marks of the files whose text is untrusted.
	taint() marker
}

// A marker marks files. A file that is marked need not exist, and marking it twice
// is marking it once.
type marker interface {
	marked(ctx context.Context) (func(path string) bool, error)
	mark(ctx context.Context, path string, tainted bool) error
}

// A File is one file in a list.
type File struct {
	Path string
	Size int64 // bytes
}

// A Source finds the backend for a call.
type Source func(env tools.Env) (Backend, error)

// Tools are all tools of this package, on the backend that b finds.
//
// What a run writes can be undone as a whole, by the hidden tool RestoreTool:
// for the last ten runs of an agent, up to 64 MiB. All changes of a run have the
// same undo.
//
// What a tainted run writes is Untrusted for later readers, until an untainted run
// replaces the whole file.
func Tools(b Source) []tools.Tool {
	return append([]tools.Tool{ls(b)}, append(fileTools(b), glob(b), grep(b), restore(b))...)
}

func missing(path string) error { return fail(NoEntry, "there is no %.200q", path) }

func isFolder(path string) error {
	return fail(IsFolder, "%.200q is a folder, not a file", path)
}

func notFolder(path string) error {
	return fail(NotFolder, "%.200q is a file, not a folder", path)
}

func tooMany(folder string) error {
	return fail(OverQuota, "there are more than %d files in %s; name a folder with fewer", MaxFiles, folderName(folder))
}

func scopeFull() error {
	return fail(OverQuota, "all files together may have %d bytes, and there may be %d of them; make some smaller first", MaxScope, MaxFiles)
}

func folderName(folder string) string {
	if folder == "" {
		return "the top folder"
	}
	return fmt.Sprintf("%.200q", folder)
}
