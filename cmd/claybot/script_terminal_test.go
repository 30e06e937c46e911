package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
)

// A terminal runs a program for a script, which answers what it sees. It works on Linux alone.
type terminal struct {
	cmd  *exec.Cmd
	file *os.File // the side of the person
	done chan struct{}
	err  error // of the program, once done is closed

	mu   sync.Mutex
	text strings.Builder
	seen int // bytes of the shown text

	acts []terminalAct
}

// Requests of Linux: man 2 ioctl_tty.
const (
	unlockTerminal = 0x40045431 // TIOCSPTLCK
	terminalNumber = 0x80045430 // TIOCGPTN
)

// escapes are what a terminal would obey.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]|\r")

// startTerminal runs a program in a session of its own, with the environment of the script.
func startTerminal(ts *testscript.TestScript, args []string) *terminal {
	ts.Check(ts.Exec("env"))
	environ := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	file, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	ts.Check(err)
	number, unlock := uint32(0), int32(0)
	for request, value := range map[uintptr]unsafe.Pointer{unlockTerminal: unsafe.Pointer(&unlock), terminalNumber: unsafe.Pointer(&number)} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(value)); errno != 0 {
			ts.Fatalf("open a terminal: %v", errno)
		}
	}
	own, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	ts.Check(err)
	defer own.Close()
	path := args[0]
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), ":") {
		if info, err := os.Stat(dir + "/" + args[0]); err == nil && !info.IsDir() {
			path = dir + "/" + args[0]
			break
		}
	}
	t := &terminal{cmd: exec.Command(path, args[1:]...), file: file, done: make(chan struct{})}
	t.cmd.Dir, t.cmd.Env = ts.MkAbs("."), append(environ, "TERM=xterm")
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = own, own, own
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(t.cmd.Start())
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := file.Read(b)
			t.mu.Lock()
			t.text.Write(b[:n])
			t.mu.Unlock()
			if err != nil { // the program has ended
				break
			}
		}
		t.err = t.cmd.Wait()
		close(t.done)
	}()
	return t
}

// shown is what the terminal shows.
func (t *terminal) shown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return escapes.ReplaceAllString(t.text.String(), "")
}

// close ends the program.
func (t *terminal) close() {
	_ = t.cmd.Process.Kill() // it may have ended
	<-t.done
	_ = t.file.Close()
}

// terminalCommand runs a program on a terminal; see README.
func (r *rig) terminalCommand(ts *testscript.TestScript, args []string) {
	if len(args) >= 2 && args[0] == "start" {
		r.terminal = startTerminal(ts, args[1:])
		r.stops = append(r.stops, r.terminal.close)
		return
	}
	t := r.terminal
	switch {
	case t == nil:
		ts.Fatalf("there is no terminal; use: terminal start PROGRAM")
	case (len(args) == 2 || len(args) == 3) && args[0] == "sees":
		re := regexp.MustCompile("(?m)" + args[1])
		until(ts, func() (bool, string) {
			text := t.shown()[t.seen:]
			m := re.FindStringSubmatchIndex(text)
			if m == nil {
				return false, fmt.Sprintf("the terminal shows %q", text)
			}
			if len(args) == 3 {
				ts.Setenv(args[2], text[m[2]:m[3]])
			}
			t.seen += m[1]
			return true, ""
		})
	case len(args) == 2 && args[0] == "types":
		t.send(ts, args[1]+"\r")
	case len(args) == 2 && args[0] == "pastes":
		t.send(ts, "\x1b[200~"+strings.ReplaceAll(args[1], `\n`, "\r")+"\x1b[201~\r")
	case len(args) == 2 && args[0] == "hides":
		if regexp.MustCompile(args[1]).MatchString(t.shown()) {
			ts.Fatalf("the terminal shows %q", t.shown())
		}
	case len(args) == 2 && args[0] == "presses":
		t.send(ts, map[string]string{"C": "\x03", "D": "\x04"}[args[1]])
	case len(args) == 2 && args[0] == "notes":
		t.acts = append(t.acts, terminalAct{t.seen, args[1]})
	case len(args) == 3 && args[0] == "recorded":
		t.recorded(ts, args[1], args[2])
	case len(args) == 2 && args[0] == "ends":
		select {
		case <-t.done:
		case <-time.After(patience):
			ts.Fatalf("it has not ended; the terminal shows %q", t.shown()[t.seen:])
		}
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](t.err); ok {
			code = exit.ExitCode()
		}
		if fmt.Sprint(code) != args[1] {
			ts.Fatalf("exit code %d, want %s; the terminal shows %q", code, args[1], t.shown())
		}
		ts.Logf("%s", t.shown())
	default:
		ts.Fatalf("usage: terminal start|sees|hides|types|pastes|presses|notes|ends|recorded ...")
	}
}

func (t *terminal) send(ts *testscript.TestScript, text string) {
	_, err := t.file.WriteString(text)
	ts.Check(err)
}
