package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// saboteurEnv leads this program into the role of a saboteur: it runs the command of
// its arguments under ptrace and lets one system call of it go wrong. The value is a
// sabotage as JSON.
const saboteurEnv = "CLAYBENCH_SABOTAGE"

// tracedEnv leads it into the role of the child, which asks the kernel to stop at the
// calls of interest and then becomes the command.
const tracedEnv = "CLAYBENCH_TRACED"

var errNoSaboteur = errors.New("system calls can be made to fail on linux/amd64 only")

// A sabotage says which system call goes wrong and how. Calls are counted over all
// threads, from the start of the command.
type sabotage struct {
	Data  string `json:"data"`  // the data directory, which the classes are about
	Port  int    `json:"port"`  // of the database server; 0: none
	Class class  `json:"class"` // of files; empty: any file of the data directory
	Call  kind   `json:"call"`  // of system calls; empty: any that writes
	K     int    `json:"k"`     // the first call that goes wrong, from 1
	Mode  mode   `json:"mode"`
	Errno int    `json:"errno"` // with modeError
	Times int    `json:"times"` // so many calls fail, with modeError; 0: all from then on
	// Report is a file that says at the end what happened.
	Report string `json:"report"`
}

// A mode is how a call goes wrong.
type mode string

// The modes. Each of the first three ends the process as kill -9 does.
const (
	modeBefore mode = "before" // the call does not happen
	modeAfter  mode = "after"  // it happens, and the process never learns of it
	modeHalf   mode = "half"   // half of the bytes are written
	modeError  mode = "error"  // it returns an error
)

// A class is a kind of file of the data directory.
type class string

// The classes.
const (
	classAny        class = ""
	classDatabase   class = "database" // claybot.db with its log
	classHistory    class = "history"  // history.jsonl
	classAgent      class = "agent"    // descriptor.json and state.json
	classAttachment class = "upload"   // what people sent
	classCron       class = "cron"     // the folders of scheduled tasks
	classOther      class = "other"
	classSocket     class = "socket" // connections to the database server
)

// A kind is a group of system calls.
type kind string

// The kinds. Only those that write can be struck by a kill.
const (
	kindAny   kind = ""      // any that writes
	kindWrite kind = "write" // write, pwrite and their vectors
	kindSync  kind = "sync"  // fsync, fdatasync
	kindMeta  kind = "meta"  // rename, unlink, mkdir, truncate, an open that creates
	kindOpen  kind = "open"  // any open
	kindRead  kind = "read"
)

// A struck is what a saboteur did.
type struck struct {
	Matched int    `json:"matched"` // calls that the sabotage was about
	Done    bool   `json:"done"`    // the k-th came
	Call    string `json:"call,omitempty"`
	Path    string `json:"path,omitempty"`
	Class   class  `json:"class,omitempty"`
}

// classOf returns the class of a file; ok is false for one outside of the data
// directory.
func (s *sabotage) classOf(path string) (c class, ok bool) {
	rel, err := filepath.Rel(s.Data, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	first, rest, _ := strings.Cut(rel, "/")
	switch {
	case strings.HasPrefix(first, "claybot.db"):
		return classDatabase, true
	case first == "cron" || first == "heartbeat":
		return classCron, true
	case first != "agents" || rest == "":
		return classOther, true
	}
	_, inside, _ := strings.Cut(rest, "/")
	switch {
	case strings.HasPrefix(inside, "history.jsonl"):
		return classHistory, true
	case strings.HasPrefix(inside, "attachments"):
		return classAttachment, true
	}
	return classAgent, true
}

// about reports whether a call is one that the sabotage is about.
func (s *sabotage) about(k kind, creates bool, c class) bool {
	if s.Class != classAny && s.Class != c || s.Class == classAny && c == classSocket {
		return false
	}
	writes := k == kindWrite || k == kindSync || k == kindMeta || k == kindOpen && creates
	switch s.Call {
	case kindAny:
		return writes
	case kindMeta:
		return k == kindMeta || k == kindOpen && creates
	}
	return s.Call == k
}

// readReport reads what the saboteur did; a saboteur that was killed left nothing.
func (s *sabotage) readReport() (struck, error) {
	var r struck
	b, err := os.ReadFile(s.Report)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

func (s *sabotage) writeReport(r struck) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(s.Report, b, 0o600)
}

// env is the environment that makes this program the saboteur.
func (s *sabotage) env() (string, error) {
	b, err := json.Marshal(s)
	return saboteurEnv + "=" + string(b), err
}

// asSaboteur takes one of the two roles if the environment asks for it, and does not
// return then.
func asSaboteur() {
	if os.Getenv(tracedEnv) != "" {
		fmt.Fprintln(os.Stderr, "claybench:", beTraced(os.Args[1:])) // returns only when it fails
		os.Exit(126)
	}
	text := os.Getenv(saboteurEnv)
	if text == "" {
		return
	}
	var s sabotage
	code, err := 125, json.Unmarshal([]byte(text), &s)
	if err == nil {
		code, err = s.run(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "claybench: saboteur:", err)
	}
	os.Exit(code)
}

// tracedCommand is the child of a saboteur.
func tracedCommand(args []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...) //nolint:noctx // it ends with its tracer
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, saboteurEnv+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, tracedEnv+"=1")
	return cmd, nil
}
