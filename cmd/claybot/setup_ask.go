package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// An asker asks questions on a terminal. It changes the terminal only while it asks, and while it is
// quiet.
type asker struct {
	fd   int
	keys *keys
	line *term.Terminal
}

// keys are the bytes of a terminal. Ctrl-C and Ctrl-D end a line in the same way, so it notes
// which it was.
type keys struct {
	io.Reader
	io.Writer
	interrupted atomic.Bool
}

// ctrlC is the byte of Ctrl-C on a terminal that sends no signal for it.
const ctrlC = 3

func (k *keys) Read(b []byte) (int, error) {
	n, err := k.Reader.Read(b)
	if bytes.IndexByte(b[:n], ctrlC) >= 0 {
		k.interrupted.Store(true)
	}
	return n, err
}

// asker returns an asker, or nil if standard input is no terminal.
func (e *env) asker() *asker {
	in, ok := e.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) { //nolint:gosec // a file descriptor is small
		return nil
	}
	out := e.err
	if isTerminal(e.out) {
		out = e.out
	}
	k := &keys{Reader: in, Writer: out}
	return &asker{fd: int(in.Fd()), keys: k, line: term.NewTerminal(k, "")} //nolint:gosec // a file descriptor is small
}

// Errors of ask.
var (
	errInputEnded  = errors.New("the input ended")
	errInterrupted = errors.New("interrupted")
)

// quiet has the terminal show nothing that is typed or pasted between two questions. The returned
// function ends that.
func (p *asker) quiet() (end func()) {
	was, err := unix.IoctlGetTermios(p.fd, getTermios)
	if err != nil {
		return func() {}
	}
	now := *was
	now.Lflag &^= unix.ECHO | unix.ECHONL
	_ = unix.IoctlSetTermios(p.fd, setTermios, &now)                  // else the terminal is gone
	return func() { _ = unix.IoctlSetTermios(p.fd, setTermios, was) } // here as well
}

// flush drops what was typed before a question was asked.
func (p *asker) flush() {
	if now, err := unix.IoctlGetTermios(p.fd, getTermios); err == nil {
		_ = unix.IoctlSetTermios(p.fd, flushTermios, now) // else the terminal is gone
	}
	p.line = term.NewTerminal(p.keys, "")
}

// ask prints a prompt and returns the answer, of which a secret is not shown. What is pasted as
// several lines is one answer. What was typed earlier answers no question, unless it is a secret, which
// users paste while the one before is checked.
func (p *asker) ask(ctx context.Context, prompt string, secret bool) (string, error) {
	if !secret {
		p.flush()
	}
	before, err := term.MakeRaw(p.fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(p.fd, before) }() // else the terminal is gone
	if width, height, err := term.GetSize(p.fd); err == nil && width > 0 {
		_ = p.line.SetSize(width, height) // else lines wrap elsewhere
	}
	p.line.SetBracketedPasteMode(true)
	defer p.line.SetBracketedPasteMode(false)
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() { // a read from a terminal cannot be interrupted
		text, err := p.lines(prompt, secret)
		done <- answer{text, err}
	}()
	select {
	case a := <-done:
		if a.err == nil {
			return strings.TrimSpace(a.text), nil
		}
		_, _ = io.WriteString(p.keys, "\r\n") // else the terminal is gone
		switch {
		case p.keys.interrupted.Load():
			return "", errInterrupted
		case errors.Is(a.err, io.EOF):
			return "", errInputEnded
		}
		return "", a.err
	case <-ctx.Done():
		_, _ = io.WriteString(p.keys, "\r\n")
		return "", errInterrupted
	}
}

// lines reads a line, or all lines that are pasted.
func (p *asker) lines(prompt string, secret bool) (string, error) {
	var all []string
	for {
		line, err := "", error(nil)
		if secret {
			line, err = p.line.ReadPassword(prompt)
		} else {
			p.line.SetPrompt(prompt)
			line, err = p.line.ReadLine()
		}
		all = append(all, line)
		if !errors.Is(err, term.ErrPasteIndicator) {
			return strings.Join(all, "\n"), err
		}
		prompt = ""
	}
}
