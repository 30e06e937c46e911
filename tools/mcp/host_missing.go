package mcp

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Missing returns what keeps the command of a server on the host from being started at all: a program, an
// interpreter of a script or a folder that this machine does not have, or that this user may not use. It
// starts nothing, and returns nil for other servers.
func (s Server) Missing() error {
	if s.Where != Host || len(s.Command) == 0 {
		return nil
	}
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil {
			return fmt.Errorf("its folder %s cannot be used: %w", s.Dir, cause(err))
		} else if !info.IsDir() {
			return fmt.Errorf("its folder %s is a file", s.Dir)
		}
	}
	program := s.Command[0]
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("its program %s cannot be run: %w", program, cause(err))
	}
	if by := interpreter(program); by != "" {
		if _, err := exec.LookPath(by); err != nil {
			return fmt.Errorf("its program %s cannot be run: its interpreter %s: %w", program, by, cause(err))
		}
	}
	return nil
}

// interpreter is the program that the first line of a script names; empty for other programs, and for a name that
// the system looks up in the folder of the process.
func interpreter(program string) string {
	if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(program)
	if err != nil {
		return "" // it may be run and not read
	}
	defer func() { _ = f.Close() }() // it was only read
	head, _ := io.ReadAll(io.LimitReader(f, 256))
	line, _, _ := bytes.Cut(head, []byte("\n"))
	words, is := bytes.CutPrefix(line, []byte("#!"))
	if fields := strings.Fields(string(words)); is && len(fields) > 0 && filepath.IsAbs(fields[0]) {
		return fields[0]
	}
	return ""
}

// cause is an error without the path, which the text around it has.
func cause(err error) error {
	for {
		switch e := err.(type) { //nolint:errorlint // it unwraps
		case *exec.Error:
			err = e.Err
		case *fs.PathError:
			err = e.Err
		default:
			return err
		}
	}
}
