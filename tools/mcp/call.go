package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// Codes of the faults of tools of servers, beside those of package tools.
const (
	FaultDown  = "unavailable" // there is no connection: nothing was called
	FaultLost  = "lost"        // the connection broke during the call; it may have acted
	FaultInput = "needs_input" // the tool asks for something in turn
)

const maxFault = 4 << 10

type tool struct {
	link  *link
	raw   string // the server's own name for it
	print string // hash of what the server said of it
	spec  tools.Spec
}

var _ tools.Tool = (*tool)(nil)

func (t *tool) Spec() tools.Spec { return t.spec }

// Call implements tools.Tool. It returns as soon as ctx or the connection ends,
// whatever the server does; the server is told of the first.
func (t *tool) Call(ctx context.Context, env tools.Env, args json.RawMessage) (tools.Result, error) {
	server := t.link.server.Name
	c, state := t.link.now()
	if c == nil {
		return tools.Result{}, &tools.Fault{Code: FaultDown, Retriable: true, Text: down(server, state)}
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, t.spec.Timeout)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(c.calls, func() { end(errClosed) })()

	a := &asking{tool: t, env: env}
	defer t.link.enter(a)()
	r, err := awaited(ctx, func() (*sdk.CallToolResult, error) { return a.call(ctx, c, args) })
	if _, ok := errors.AsType[*jsonrpc.Error](err); err != nil && !ok {
		c.unanswered.Store(true)
	}
	wait, refused := a.paused()
	if whole.Err() == nil && wait != nil {
		return tools.Result{Wait: wait}, nil
	}
	out, failed := t.outcome(whole, ctx, env, r, err)
	if f, ok := errors.AsType[*tools.Fault](failed); ok && refused != "" {
		f.Text += "\nclaybot did not pass on a question of the MCP server: " + refused
	}
	return out, failed
}

// outcome is what the answer of the server, or an error in its place, comes to.
func (t *tool) outcome(whole, limited context.Context, env tools.Env, r *sdk.CallToolResult, err error) (tools.Result, error) {
	if err != nil {
		f, quotes := t.fault(whole, limited, err)
		return tools.Result{Untrusted: quotes}, f
	}
	return t.result(whole, env, r)
}

// traced is the span of a call as OpenTelemetry's conventions for MCP hand it on, in _meta
// (https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/); nil for none.
func traced(ctx context.Context) sdk.Meta {
	span := claybot.TraceOf(ctx).String()
	if span == "" {
		return nil
	}
	return sdk.Meta{"traceparent": span}
}

// awaited makes a call of the library in a goroutine and returns when the call or ctx
// ends: the library may wait for a server that does not read.
func awaited[T any](ctx context.Context, call func() (T, error)) (v T, err error) {
	done := make(chan struct{})
	var late T
	var failed error
	go func() {
		defer close(done)
		late, failed = call()
	}()
	select {
	case <-done:
		return late, failed
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

// down says why a tool cannot be called, and what helps.
func down(server, state string) string {
	switch state {
	case StateLogin:
		return fmt.Sprintf("the MCP server %s wants a login: an operator must run claybot mcp login %s", server, server)
	case StateStopped:
		return fmt.Sprintf("the MCP server %s is stopped", server)
	}
	return fmt.Sprintf("the MCP server %s is not connected now; it is tried again within a minute", server)
}

// fault says what kind an error of a call is, and whether it quotes the server.
// whole is the context of the caller, limited the one with the limits of the call.
func (t *tool) fault(whole, limited context.Context, err error) (f *tools.Fault, quotes bool) {
	server := t.link.server.Name
	var wire *jsonrpc.Error
	switch {
	case whole.Err() != nil:
		return &tools.Fault{Code: tools.FaultInterrupted, Text: t.spec.Name + " was interrupted: the run was stopped"}, false
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return &tools.Fault{Code: tools.FaultTimeout, Text: fmt.Sprintf("%s took longer than %s and was given up; it may have acted", t.spec.Name, t.spec.Timeout)}, false
	case limited.Err() != nil || ended(err):
		return &tools.Fault{Code: FaultLost, Text: fmt.Sprintf("the MCP server %s ended during the call, which may have acted; it is started again", server)}, false
	case errors.Is(err, errLogin):
		return &tools.Fault{Code: FaultDown, Retriable: true, Text: down(server, StateLogin)}, false
	case errors.As(err, &wire):
		return wireFault(t.spec.Name, wire, t.words(wire.Message)), true
	}
	var dial *net.OpError
	return &tools.Fault{
		Code: "network", Retriable: errors.As(err, &dial) && dial.Op == "dial",
		Text: fmt.Sprintf("the MCP server %s gave no answer that can be used: %s", server, t.words(err.Error())),
	}, true
}

// ended reports the errors of calls whose connection is gone.
func ended(err error) bool {
	for _, gone := range []error{sdk.ErrConnectionClosed, sdk.ErrSessionMissing, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, net.ErrClosed, errFull} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

func wireFault(name string, e *jsonrpc.Error, words string) *tools.Fault {
	f := &tools.Fault{Code: tools.FaultFailed, Text: words}
	switch e.Code {
	case jsonrpc.CodeInvalidParams:
		f.Code = tools.FaultArguments
	case jsonrpc.CodeMethodNotFound:
		f.Code, f.Text = tools.FaultUnknown, name+" is no longer there: "+words
	case jsonrpc.CodeInternalError:
		f.Code = tools.FaultInternal
	}
	if words == "" {
		f.Text = fmt.Sprintf("%s failed with code %d and no words", name, e.Code)
	}
	return f
}

func (t *tool) words(s string) string { return plain(t.link.red.clean(s), maxFault) }

func (t *tool) result(ctx context.Context, env tools.Env, r *sdk.CallToolResult) (tools.Result, error) {
	out := tools.Result{Untrusted: true}
	if r == nil || r.NeedsInput() {
		return out, &tools.Fault{Code: FaultInput, Text: t.spec.Name + " asks for more in turn; give it all in the arguments"}
	}
	b := builder{tool: t, ctx: ctx, env: env, out: &out}
	for _, c := range r.Content {
		b.add(c)
	}
	if b.text.Len() == 0 && r.StructuredContent != nil {
		raw, err := json.MarshalIndent(r.StructuredContent, "", " ")
		if err == nil {
			b.write(string(raw))
		}
	}
	out.Text = b.text.String()
	if r.IsError {
		words := plain(out.Text, maxFault)
		if words == "" {
			words = t.spec.Name + " failed and said nothing"
		}
		return out, &tools.Fault{Code: tools.FaultFailed, Text: words}
	}
	return out, nil
}

type builder struct {
	tool *tool
	ctx  context.Context //nolint:containedctx // of the one call that it lives for
	env  tools.Env
	out  *tools.Result
	text strings.Builder
	full bool
}

// write adds a part of the text, on lines of its own.
func (b *builder) write(s string) {
	if b.full {
		return
	}
	if b.text.Len() > 0 && !strings.HasSuffix(b.text.String(), "\n") {
		b.text.WriteByte('\n')
	}
	s = b.tool.link.red.known(s)
	if left := maxOutput - b.text.Len(); len(s) > left {
		s = strings.ToValidUTF8(s[:max(left, 0)], "") + fmt.Sprintf("\n[what follows the first %d bytes was dropped]", maxOutput)
		b.full = true
	}
	b.text.WriteString(s)
}

func (b *builder) add(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		b.write(c.Text)
	case *sdk.ImageContent:
		b.file("image", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		b.file("audio", c.MIMEType, c.Data)
	case *sdk.ResourceLink:
		b.write(fmt.Sprintf("[link: %s %s]", plain(c.Name, 200), plain(c.URI, 1000)))
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
		case len(c.Resource.Blob) > 0:
			b.file(baseName(c.Resource.URI), c.Resource.MIMEType, c.Resource.Blob)
		default:
			b.write(c.Resource.Text)
		}
	default:
		raw, err := json.Marshal(c)
		if err == nil {
			b.write(string(raw))
		}
	}
}

func baseName(uri string) string {
	name := uri[strings.LastIndexAny(uri, `/\`)+1:]
	name, _, _ = strings.Cut(name, "?")
	if name = plain(name, 100); strings.Trim(name, ".") == "" {
		return "file"
	}
	return name
}

// ending is the usual ending of names of files of a kind. Only the common kinds
// have one: what a machine knows beyond them differs from the next machine.
func ending(kind string) string {
	switch kind {
	case "image/png", "image/gif", "image/webp", "application/pdf", "audio/wav", "audio/ogg", "text/html", "text/csv", "application/json":
		return "." + kind[strings.IndexByte(kind, '/')+1:]
	case "image/jpeg":
		return ".jpg"
	case "image/svg+xml":
		return ".svg"
	case "audio/mpeg":
		return ".mp3"
	case "text/plain":
		return ".txt"
	}
	return ""
}

func (b *builder) file(name, kind string, data []byte) {
	kind, _, err := mime.ParseMediaType(kind)
	if err != nil {
		kind = "application/octet-stream"
	}
	if !strings.Contains(name, ".") {
		name += ending(kind)
	}
	what := fmt.Sprintf("%s, %s, %d bytes", name, kind, len(data))
	switch {
	case len(data) == 0:
		b.write(fmt.Sprintf("[an empty file: %s]", what))
	case b.tool.link.m.cfg.SaveFile == nil || len(b.out.Files) >= maxFiles:
		b.write(fmt.Sprintf("[a file that is not kept: %s]", what))
	default:
		f, err := b.tool.link.m.cfg.SaveFile(b.ctx, b.env, name, kind, data)
		if err != nil {
			b.tool.link.m.log().Warn("failed to save a file from an MCP server", "server", b.tool.link.server.Name, "agent", b.env.Agent.ID, "err", err)
			b.write(fmt.Sprintf("[a file that could not be kept: %s]", what))
			return
		}
		b.out.Files = append(b.out.Files, f)
		b.write(fmt.Sprintf("[file: %s]", what))
	}
}
