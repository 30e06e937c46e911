package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/workspace"
)

// TestMain is also the program that the tests start as a server.
func TestMain(m *testing.M) {
	switch os.Getenv("MCP_TEST_SERVER") {
	case "":
		os.Exit(m.Run())
	case "good":
		if _, err := os.Stat(os.Getenv("MCP_TEST_DEAD")); err == nil {
			os.Exit(7)
		}
		err := goodServer(nil).Run(context.Background(), &sdk.StdioTransport{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "hold": // a child of the server, which holds a connection until it is ended
		c, err := net.Dial("tcp", os.Getenv("MCP_TEST_HOLD"))
		if err == nil {
			_, _ = c.Write([]byte("here\n"))
			_, _ = io.Copy(io.Discard, c)
		}
		ignoreSignals()
	case "deaf": // ignores the end of its input and requests to end
		signal.Ignore(syscall.SIGTERM)
		_, _ = os.Stdout.WriteString("\n")
		ignoreSignals()
	}
}

// ignoreSignals never returns. An empty select would be a deadlock that the runtime
// ends the process for, where no C library is linked.
func ignoreSignals() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	for range c {
	}
}

type textArgs struct {
	Text string `json:"text"`
}

func words(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// goodServer is a server as the library makes it. calls may be nil; it gets the
// names of tools as their calls begin.
func goodServer(calls chan<- string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "good", Version: "1"}, nil)
	add := func(name string, fn func(context.Context, textArgs) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Does " + name + ".", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}},
			func(ctx context.Context, _ *sdk.CallToolRequest, in textArgs) (*sdk.CallToolResult, any, error) {
				if calls != nil {
					calls <- name
				}
				r, err := fn(ctx, in)
				return r, nil, err
			})
	}
	add("echo", func(_ context.Context, in textArgs) (*sdk.CallToolResult, error) { return words("%s", in.Text), nil })
	add("env", func(context.Context, textArgs) (*sdk.CallToolResult, error) { return words("%v", os.Environ()), nil })
	add("fail", func(context.Context, textArgs) (*sdk.CallToolResult, error) {
		return nil, errors.New("it \x1b[31mbroke\u202e")
	})
	add("picture", func(context.Context, textArgs) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "look"}, &sdk.ImageContent{Data: []byte("png!"), MIMEType: "image/png"},
			&sdk.ResourceLink{Name: "more", URI: "file:///x"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a/note.txt", Text: "inside"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a/b.bin", MIMEType: "bad type", Blob: []byte{1, 2}}},
		}}, nil
	})
	add("wait", func(ctx context.Context, _ textArgs) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		if calls != nil {
			calls <- "cancelled"
		}
		return nil, ctx.Err()
	})
	add("die", func(context.Context, textArgs) (*sdk.CallToolResult, error) {
		if dead := os.Getenv("MCP_TEST_DEAD"); dead != "" {
			if err := os.WriteFile(dead, nil, 0o600); err != nil {
				return nil, err
			}
		}
		os.Exit(7)
		return nil, nil
	})
	add("spawn", func(context.Context, textArgs) (*sdk.CallToolResult, error) {
		c := exec.Command(os.Args[0])
		c.Env = []string{"MCP_TEST_SERVER=hold", "MCP_TEST_HOLD=" + os.Getenv("MCP_TEST_HOLD")}
		return words("spawned"), c.Start()
	})
	add("more", func(_ context.Context, in textArgs) (*sdk.CallToolResult, error) {
		sdk.AddTool(s, &sdk.Tool{Name: in.Text}, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, any, error) {
			return words("new"), nil, nil
		})
		return words("added"), nil
	})
	return s
}

// A rig is a Manager that runs.
type rig struct {
	t *testing.T
	*mcp.Manager
	changed chan struct{}
	stop    func()
	done    chan struct{}
}

func run(t *testing.T, cfg mcp.Config) *rig {
	t.Helper()
	r := &rig{t: t, changed: make(chan struct{}, 1000), done: make(chan struct{})}
	cfg.Changed = func() { r.changed <- struct{}{} }
	r.Manager = mcp.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = sync.OnceFunc(func() { cancel(); <-r.done })
	go func() {
		defer close(r.done)
		if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(r.stop)
	return r
}

// await waits for a change of the list after which ok holds.
func (r *rig) await(ok func() bool) {
	r.t.Helper()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-r.changed:
		case <-time.After(10 * time.Millisecond): // a state may change without the list
		case <-limit:
			r.t.Fatalf("it does not come: %+v", r.Status())
		}
	}
}

func (r *rig) status(server string) mcp.ServerStatus {
	all := r.Status()
	i := slices.IndexFunc(all, func(s mcp.ServerStatus) bool { return s.Name == server })
	if i < 0 {
		r.t.Fatalf("no server %s", server)
	}
	return all[i]
}

// connected waits until a server is connected.
func (r *rig) connected(server string) {
	r.t.Helper()
	r.await(func() bool { return r.status(server).State == mcp.StateConnected })
}

// up is connected, and allows what the server offers.
func (r *rig) up(server string) {
	r.t.Helper()
	r.connected(server)
	if hash := r.status(server).OffHash; hash != "" { // its tools are new
		if _, err := r.Allow(r.t.Context(), server, "", hash); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) names() (names []string) {
	for _, t := range r.Tools(nil) {
		names = append(names, t.Spec().Name)
	}
	return names
}

func (r *rig) tool(name string) tools.Tool {
	r.t.Helper()
	for _, t := range r.Tools(nil) {
		if t.Spec().Name == name {
			return t
		}
	}
	r.t.Fatalf("no tool %s among %v", name, r.names())
	return nil
}

// call calls a tool the way agents do.
func (r *rig) call(ctx context.Context, name, args string) tools.Outcome {
	r.t.Helper()
	s, err := tools.NewSet(r.Tools(nil)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return s.Do(ctx, tools.Env{}, claybot.ToolCall{ID: "c", Name: name, Args: args})
}

func (r *rig) want(name, args, text string) {
	r.t.Helper()
	// What a server says is marked as data from outside.
	if o := r.call(r.t.Context(), name, args); !o.Record.OK || !strings.HasPrefix(o.Record.Text, "<untrusted-") || !strings.Contains(o.Record.Text, "\n\n"+text+"\n</untrusted-") {
		r.t.Errorf("%s(%s) = %+v %q, want %q", name, args, o.Fault, o.Record.Text, text)
	}
}

func (r *rig) fault(ctx context.Context, name, args, code, text string) {
	r.t.Helper()
	if o := r.call(ctx, name, args); o.Fault == nil || o.Fault.Code != code || !strings.Contains(o.Fault.Text, text) {
		r.t.Errorf("%s(%s) = %+v %q, want the fault %s: %q", name, args, o.Fault, o.Record.Text, code, text)
	}
}

// self is this program as a server on the host.
func self(t *testing.T, mode string, env ...string) mcp.Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.Server{Name: "srv", Command: []string{exe}, Where: mcp.Host, Env: []workspace.Var{{Name: "MCP_TEST_SERVER", Value: mode}}}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		s.Env = append(s.Env, workspace.Var{Name: name, Value: value})
	}
	return s
}

// A script is a program inside the test, for servers that no library would make.
type script struct {
	in   *bufio.Reader
	out  io.Writer
	errs io.Writer
}

// A process runs a script.
type process struct {
	io.Reader
	toScript   *io.PipeWriter
	fromScript *io.PipeReader
	mu         sync.Mutex
	words      strings.Builder
	done       chan struct{}
}

func (p *process) Write(b []byte) (int, error) { return p.toScript.Write(b) }
func (p *process) CloseWrite() error           { return p.toScript.Close() }
func (p *process) Close() error {
	_ = p.toScript.CloseWithError(io.EOF)
	_ = p.fromScript.CloseWithError(io.ErrClosedPipe)
	return nil
}

func (p *process) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.words.String()
}

func (p *process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return 3, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

type errWriter struct{ p *process }

func (w errWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.p.words.Write(b)
}

// pipes makes a Pipe that runs fn for each start, with the number of starts
// before it.
func pipes(fn func(start int, s *script)) func(context.Context, mcp.Server, workspace.Command) (workspace.Process, error) {
	var mu sync.Mutex
	starts := 0
	return func(ctx context.Context, _ mcp.Server, _ workspace.Command) (workspace.Process, error) {
		mu.Lock()
		n := starts
		starts++
		mu.Unlock()
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		p := &process{Reader: outR, toScript: inW, fromScript: outR, done: make(chan struct{})}
		context.AfterFunc(ctx, func() { _ = p.Close() })
		go func() {
			defer close(p.done)
			fn(n, &script{in: bufio.NewReader(inR), out: outW, errs: errWriter{p}})
			_ = outW.Close()
			_ = inR.Close()
		}()
		return p, nil
	}
}

// A message is one of the protocol.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params struct {
		Name   string `json:"name"`
		Cursor string `json:"cursor"`
	} `json:"params"`
}

// next reads the next message; false at the end.
func (s *script) next() (m message, ok bool) {
	line, err := s.in.ReadBytes('\n')
	return m, err == nil && json.Unmarshal(line, &m) == nil
}

func (s *script) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

func (s *script) answer(m message, result string) {
	s.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// serve answers all messages: lists says what is listed, in JSON; call answers
// calls.
func (s *script) serve(lists func() string, call func(m message)) {
	for {
		m, ok := s.next()
		if !ok {
			return
		}
		switch m.Method {
		case "initialize":
			s.answer(m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"script\u202e","version":"\u001b[31m1"}}`)
		case "tools/list":
			s.answer(m, lists())
		case "tools/call":
			call(m)
		default:
			if m.ID != nil {
				s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
			}
		}
	}
}

func always(list string) func() string { return func() string { return list } }

// listed is the JSON of a list of tools by name and description.
func listed(pairs ...string) string {
	var all []string
	for i := 0; i+1 < len(pairs); i += 2 {
		b, _ := json.Marshal(map[string]any{"name": pairs[i], "description": pairs[i+1], "inputSchema": map[string]any{"type": "object"}})
		all = append(all, string(b))
	}
	return `{"tools":[` + strings.Join(all, ",") + `]}`
}

var scripted = []mcp.Server{{Name: "srv", Command: []string{"x"}}}

type pipeFunc = func(context.Context, mcp.Server, workspace.Command) (workspace.Process, error)

// choose gives the server srv the first and all others the second.
func choose(srv, others pipeFunc) pipeFunc {
	return func(ctx context.Context, server mcp.Server, c workspace.Command) (workspace.Process, error) {
		if server.Name == "srv" {
			return srv(ctx, server, c)
		}
		return others(ctx, server, c)
	}
}

// watched calls fn when word is read.
func watched(r *bufio.Reader, word string, fn func()) *bufio.Reader {
	return bufio.NewReader(readFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		if strings.Contains(string(b[:n]), word) {
			fn()
		}
		return n, err
	}))
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }
