package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

type chatCmd struct {
	Message *string `short:"m" placeholder:"TEXT" help:"Message to send; chat prints the reply and exits with 0 on success, 1 on failure."`
	JSON    bool    `name:"json" help:"Print the events of the run as JSON lines; requires -m."`
}

// Run chats with the running daemon, or with one inside this process if none runs.
func (c chatCmd) Run(e *env) error {
	if c.Message != nil && strings.TrimSpace(*c.Message) == "" {
		return usageError{errors.New("the message of -m is empty; leave -m out to chat line by line")}
	}
	cfg, _, unread := e.load()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cl, err := dial(cfg.DataDir)
	if unread != nil {
		cl, err = e.connectAnyway(unread)
	}
	inside := errors.Is(err, api.ErrNoDaemon)
	if inside {
		var stop func() error
		cl, stop, err = e.inside(ctx, cfg)
		if inside = !errors.Is(err, storage.ErrLocked); !inside {
			cl, err = beginning(ctx, cfg.DataDir, err)
		} else if err == nil {
			defer func() {
				if err := stop(); err != nil {
					fmt.Fprintln(e.err, "claybot:", err)
				}
			}()
		}
	}
	if err != nil {
		return err
	}
	if err := cl.ready(ctx); err != nil {
		return err
	}
	t := &talk{client: cl, out: e.out, errs: e.err, json: c.JSON, inside: inside, typed: isTerminal(e.in)}
	if c.Message != nil {
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
		return t.once(ctx, *c.Message)
	}
	return t.converse(ctx, e.in)
}

// startTime bounds the wait for a daemon that has just started. It needs far less, but the
// machine may be busy.
const startTime = 30 * time.Second

// beginning waits for a daemon that holds its data directory and does not listen yet. If none
// comes, it returns held, which says who holds the directory.
func beginning(ctx context.Context, dir string, held error) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		cl, err := dial(dir)
		if !errors.Is(err, api.ErrNoDaemon) {
			return cl, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, held
		}
	}
}

// ready waits until the terminal chat accepts messages.
func (c *client) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		var st overview.Status
		err := c.call(ctx, "GET", "/status", nil, &st)
		up := slices.ContainsFunc(st.Connectors, func(x overview.ConnectorStatus) bool {
			return x.Name == "terminal" && x.State == connectors.StateLive
		})
		if up {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(errors.New("the daemon does not accept messages yet; see its log"), err)
		}
	}
}

// A talk is one conversation in the terminal.
type talk struct {
	client *client
	out    io.Writer
	errs   io.Writer
	json   bool
	inside bool   // the daemon is part of this process
	typed  bool   // by a user; otherwise the lines come from a script
	shown  string // the printed part of the growing text
	run    claybot.RunID
	waits  []*wait // the messages without an end
	failed bool    // one of them failed
	broke  bool    // the newest one waits for a budget
	place  position
	still  *time.Timer // until a message without output gets a sign of life
	wrote  bool        // something was printed since the newest message was sent
	using  string      // the tool that a run uses
}

// A position is where a talk is in the stream of its conversation.
type position struct {
	after  int64              // in the outbox
	newest claybot.Event      // of the run at work
	cut    context.CancelFunc // ends the newest stream that was opened after a break
	away   bool               // the user knows that the database does not respond
}

var errGone = errors.New("connection to the daemon lost; your message is stored, and claybot answers it after the next start, or at once on another cluster member")

// The frames of the stream that the terminal shows.
type (
	saidFrame struct {
		ID      string               `json:"id"`
		Kind    claybot.OutgoingKind `json:"kind"`
		Run     claybot.RunID        `json:"run"`
		Message claybot.MessageID    `json:"message"` // that it replies to
		Text    string               `json:"text"`
		Shown   string               `json:"shown"` // of a text that is kept current
	}
	growFrame struct {
		Run  claybot.RunID `json:"run"`
		Step int           `json:"step"`
		Text string        `json:"text"`
	}
)

// open starts the stream of the conversation after the existing messages.
func (t *talk) open(ctx context.Context) (<-chan api.Frame, error) {
	var before struct {
		After int64 `json:"after"`
	}
	if err := t.client.call(ctx, "GET", "/terminal/transcript?limit=50", nil, &before); err != nil {
		return nil, err
	}
	t.place.after = before.After
	t.still = time.NewTimer(stillAfter)
	return t.listen(ctx)
}

// send posts a message and returns its id.
func (t *talk) send(ctx context.Context, text string) (claybot.MessageID, error) {
	in := map[string]string{"id": rand.Text(), "text": text}
	var out struct {
		MessageID claybot.MessageID `json:"messageId"`
	}
	err := t.client.call(ctx, "POST", "/terminal/messages", in, &out)
	return out.MessageID, err
}

// converse sends each line as a message until the input ends and every message has its
// reply. Ctrl-C stops the active run; twice within two seconds it leaves. It sends the lines
// of a script one by one, after the reply to the previous one, and fails if one fails.
func (t *talk) converse(ctx context.Context, in io.Reader) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	return t.lines(ctx, in, interrupts)
}

func (t *talk) lines(ctx context.Context, in io.Reader, interrupts <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer t.still.Stop()
	lines := readLines(in)
	t.prompt("Write a message and press Enter. /help shows the commands; Ctrl-D leaves.\n\n> ")
	var last time.Time
	var lost error // why the input could not be read completely
	look := time.NewTicker(lookFlows)
	defer look.Stop()
	for lines != nil || len(t.waits) > 0 {
		next := lines
		if !t.typed && len(t.waits) > 0 {
			next = nil
		}
		select {
		case <-look.C:
			t.settle(t.ofFlows(ctx)...)
		case ev, ok := <-events:
			if !ok {
				var missed []api.Frame
				if events, missed, err = t.again(ctx); err != nil {
					return err
				}
				t.settle(missed...)
				break
			}
			if t.note(ev) {
				t.show(ev)
			}
			t.settle(ev)
		case line, ok := <-next:
			switch {
			case !ok:
				lines = nil
			case line.err != nil: // after the replies to earlier lines
				lost, lines = line.err, nil
			default:
				if err := t.speak(ctx, line.text); err != nil {
					return err
				}
			}
		case <-t.still.C:
			t.sign(ctx)
		case <-interrupts:
			if time.Since(last) < 2*time.Second {
				return nil
			}
			last = time.Now()
			if _, err := t.send(ctx, "/stop"); err != nil {
				return err
			}
			t.print("\n(Ctrl-C again leaves)\n")
		}
	}
	if t.failed && lost == nil {
		return errSilent
	}
	return lost
}

// speak sends a line. A refusal is shown to a user; a script fails.
func (t *talk) speak(ctx context.Context, line string) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	id, err := t.send(ctx, line)
	switch {
	case err == nil:
		t.await(newWait(id, line))
	case !t.typed:
		return err
	default:
		t.print("claybot: " + err.Error() + "\n> ")
	}
	return nil
}

// settle drops the messages that events ended.
func (t *talk) settle(events ...api.Frame) {
	before := len(t.waits)
	for _, ev := range events {
		t.waits = slices.DeleteFunc(t.waits, func(w *wait) bool {
			done, _, failed := w.see(ev)
			t.failed = t.failed || done && failed && !t.typed
			return done
		})
	}
	if len(t.waits) < before {
		t.prompt("\n> ")
	}
}

// prompt prints what only a user needs.
func (t *talk) prompt(s string) {
	if t.typed {
		t.print(s)
	}
}

// maxLine is the size of the longest line that is sent.
const maxLine = 1 << 20

// An inputLine is a line of the input, or the error that ends it.
type inputLine struct {
	text string
	err  error
}

// readLines sends the lines of r. An error, such as a line that is too long, is the last
// one. Its goroutine ends with the input or the process: a read from a terminal cannot be
// interrupted.
func readLines(r io.Reader) <-chan inputLine {
	lines := make(chan inputLine)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		n := 0
		for ; s.Scan(); n++ {
			lines <- inputLine{text: s.Text()}
		}
		switch err := s.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			lines <- inputLine{err: fmt.Errorf("line %d of the input has more than %d bytes: neither it nor the lines after it were sent; "+
				"split it, or send it as a file on the web page", n+1, maxLine)}
		case err != nil:
			lines <- inputLine{err: fmt.Errorf("cannot read the input after line %d: %w", n, err)}
		}
	}()
	return lines
}

// show prints one event.
func (t *talk) show(ev api.Frame) {
	switch ev.Name {
	case "preview":
		if g, ok := decode[growFrame](ev.Data); ok {
			t.grow(g)
		}
	case "message":
		if s, ok := decode[saidFrame](ev.Data); ok {
			t.say(s)
		}
	case "event":
		if e, ok := decode[claybot.Event](ev.Data); ok {
			t.tool(e)
		}
	}
}

// grow prints the new part of a growing text.
func (t *talk) grow(g growFrame) {
	text := plain(g.Text)
	if g.Run != t.run || !strings.HasPrefix(text, t.shown) {
		if t.shown != "" {
			t.print("\n")
		}
		t.run, t.shown = g.Run, ""
	}
	t.print(text[len(t.shown):])
	t.shown = text
}

// say prints a complete text, or the part that grow has not printed. A text of another run
// in between does not change that part.
func (t *talk) say(s saidFrame) {
	text := plain(s.Text)
	if t.shown != "" && s.Run != t.run {
		t.print("\n" + text + "\n")
		return
	}
	if rest, ok := strings.CutPrefix(text, t.shown); ok {
		text = rest
	} else {
		t.print("\n")
	}
	t.shown = ""
	t.print(text + "\n")
}

func (t *talk) tool(e claybot.Event) {
	switch e.Type {
	case claybot.EventToolCalled:
		if d, ok := decode[runs.ToolStarted](e.Data); ok {
			t.print(plain(fmt.Sprintf("\n  [%s %s]\n", d.Tool, d.ArgsPreview)))
		}
		t.shown = ""
	case claybot.EventToolSucceeded, claybot.EventToolFailed:
		if d, ok := decode[runs.ToolEnded](e.Data); ok {
			t.print(plain(fmt.Sprintf("  [%s: %s%s]\n", d.Tool, d.Preview, d.Error)))
		}
	}
}

func (t *talk) print(s string) {
	t.wrote = true
	_, _ = io.WriteString(t.out, s) // a closed terminal ends the input as well
}

// once sends one message, prints its reply and returns errSilent if its run failed. It stops
// waiting when ctx ends.
func (t *talk) once(ctx context.Context, text string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := t.open(ctx)
	if err != nil {
		return err
	}
	id, err := t.send(ctx, text)
	if err != nil {
		return err
	}
	w := newWait(id, text)
	t.await(w)
	defer t.still.Stop()
	look := time.NewTicker(lookFlows)
	defer look.Stop()
	for {
		select {
		case <-t.still.C:
			t.sign(ctx)
			continue
		case <-look.C:
			for _, ev := range t.ofFlows(ctx) {
				if done, reply, failed := w.see(ev); done {
					return t.end(w, reply, failed)
				}
			}
			continue
		case ev, ok := <-events:
			if !ok {
				break
			}
			if news := t.note(ev); news && t.json && ev.Name == "event" {
				t.print(string(ev.Data) + "\n")
			}
			if done, reply, failed := w.see(ev); done {
				return t.end(w, reply, failed)
			}
			continue
		}
		var missed []api.Frame
		events, missed, err = t.again(ctx)
		if ctx.Err() != nil {
			return t.interrupted()
		}
		if err != nil {
			return err
		}
		for _, ev := range missed {
			if done, reply, failed := w.see(ev); done {
				return t.end(w, reply, failed)
			}
		}
	}
}

// interrupted says what happens to the message, before the daemon of this process gives its
// runs a moment to end.
func (t *talk) interrupted() error {
	rest := "its run continues; `claybot runs` shows it"
	if t.inside {
		rest = "claybot continues it after the next start"
	}
	fmt.Fprintln(t.errs, "claybot: interrupted; the message is stored, and "+rest)
	return interruptedError{}
}

// end prints the reply; for a stopped run, what it had written so far.
func (t *talk) end(w *wait, reply string, failed bool) error {
	stopped := w.ended == claybot.EventRunCanceled
	t.broke = w.budget
	switch {
	case t.json:
	case stopped && reply == "":
		fmt.Fprintln(t.errs, "claybot: the run was stopped before it wrote a reply")
	case stopped:
		t.print(plain(reply) + "\n")
	case failed:
		fmt.Fprintln(t.errs, plain(reply))
	case reply != "":
		t.print(plain(reply) + "\n")
	}
	if failed {
		return errSilent
	}
	return nil
}
