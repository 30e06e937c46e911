package api_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

// A generator makes a client of the document in a folder, and a program that uses it.
type generator struct {
	lang     string
	commands [][]string // that make and check it; $BIN is the folder of the generators
	run      []string
	// wrong is a use of the client that must not compile: a piece of its file, and what comes in its place.
	file, piece, wrong string
}

var generators = []generator{
	{"go", [][]string{
		{"mkdir", "-p", "claybot"},
		{"$BIN/oapi-codegen", "-package", "claybot", "-generate", "client,models", "-o", "claybot/claybot.go", "openapi.json"},
		{"go", "build", "-o", "use", "."},
	}, []string{"./use"}, "main.go", "Text: &text", "Text: text"},
	{"typescript", [][]string{
		{"ln", "-sfn", "$BIN/node_modules", "node_modules"},
		{"node", "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "claybot.d.ts"},
		{"node", "node_modules/typescript/bin/tsc"},
	}, []string{"node", "use.js"}, "use.ts", "e.data.code", "e.data.cod"},
}

// A faultyProxy does something wrong with the first request of each path and method, and of each caller, which the first part of the
// path names.
type faultyProxy struct {
	on   http.Handler
	mu   sync.Mutex
	seen map[string]bool
}

// The faults of a proxy.
const (
	faultNone = "none"
	faultCut  = "connection-cut" // claybot has the request; nothing comes back
	faultHalf = "half-an-answer"
	faultHang = "no-answer" // claybot has the request; the client gives up
	fault504  = "504"       // claybot has the request
	fault503  = "503"       // claybot does not have the request
	fault429  = "429"
	failedRun = "failed-run" // nothing is wrong with requests
)

var proxyFaults = []string{faultNone, faultCut, faultHalf, faultHang, fault504, fault503, fault429, failedRun}

func (p *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, _, _ := strings.Cut(r.URL.Path[1:], "/")
	fault, _, _ := strings.Cut(caller, ".")
	p.mu.Lock()
	which := r.Method + " " + r.URL.Path
	again := p.seen[which]
	p.seen[which] = true
	p.mu.Unlock()
	on := http.StripPrefix("/"+caller, p.on)
	if again || fault == faultNone || fault == failedRun {
		on.ServeHTTP(w, r)
		return
	}
	switch fault {
	case fault503, fault429:
		w.Header().Set("Retry-After", "1")
		code, _ := strconv.Atoi(fault) // they are numbers
		http.Error(w, "<html>the proxy is busy</html>", code)
		return
	}
	answer := httptest.NewRecorder()
	on.ServeHTTP(answer, r)
	switch fault {
	case fault504:
		http.Error(w, "<html>504 Gateway Time-out</html>", http.StatusGatewayTimeout)
	case faultHang:
		<-r.Context().Done()
	case faultHalf:
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2]) // the client may be gone
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// throughFaults uses a generated client through each fault of a proxy: what it prints is the end of its one run, whose tool acted once.
func throughFaults(t *testing.T, lang string, run func(token, url, text, key string) (string, error)) {
	r, p := withPress(t)
	p.letGo()
	to := &url.URL{Scheme: "http", Host: r.addr}
	proxy := &faultyProxy{seen: make(map[string]bool), on: &httputil.ReverseProxy{
		Rewrite: func(req *httputil.ProxyRequest) { req.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0), Transport: r.http.Transport,
	}}
	srv := httptest.NewUnstartedServer(proxy)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	defer srv.Close()
	for _, fault := range proxyFaults {
		key := fault + "." + lang
		end, want := llmtest.Say("the answer to "+key), "SUCCEEDED the answer to "+key+"\n"
		if fault == failedRun {
			end, want = llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the account is closed"}}, "FAILED model: the account is closed\n"
		}
		r.mind.plan(key, llmtest.Use(claybot.ToolCall{ID: "p", Name: "press", Args: `{}`}), end)
		if out, err := run(r.token, srv.URL+"/"+key, key, key); err != nil || out != want {
			t.Errorf("%s: the program printed %q, %v, want %q", fault, out, err, want)
		}
	}
	if n, m := r.runs(), int(p.calls.Load()); n != len(proxyFaults) || m != n {
		t.Errorf("%d runs with %d calls of the tool, want %d of each", n, m, len(proxyFaults))
	}
}

// Clients that are generated from the document compile as they are, start a run and read what it came to, whatever a proxy does to
// their requests; and their types are those of the document.
func TestGeneratedClients(t *testing.T) {
	needClients(t)
	r := start(t)
	document := r.do("GET", "/openapi.json", "").body
	bin, err := filepath.Abs(clientsDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range generators {
		t.Run(g.lang, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("testdata/generated")); err != nil {
				t.Fatal(err)
			}
			writeTo(t, dir, "openapi.json", document)
			writeTo(t, dir, "package.json", `{"type": "module"}`)
			for _, c := range g.commands {
				if out, err := runIn(t, dir, bin, r.token, c...); err != nil {
					t.Fatalf("%s: %v\n%.3000s", c, err, out)
				}
			}
			throughFaults(t, g.lang, func(token, url, text, key string) (string, error) {
				return runIn(t, dir, bin, token, append(slices.Clone(g.run), url, text, key)...)
			})
			text, err := os.ReadFile(filepath.Join(dir, g.file))
			if err != nil || !bytes.Contains(text, []byte(g.piece)) {
				t.Fatalf("%s lacks %q: %v", g.file, g.piece, err)
			}
			writeTo(t, dir, g.file, strings.Replace(string(text), g.piece, g.wrong, 1))
			if out, err := runIn(t, dir, bin, r.token, g.commands[len(g.commands)-1]...); err == nil {
				t.Errorf("a wrong use of the client compiles: %s", out)
			}
		})
	}
}

func writeTo(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runIn runs a command in a folder, without the network, and returns what it prints.
func runIn(t *testing.T, dir, bin, token string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$BIN", bin)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // one of generators
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CLAYBOT_TOKEN="+token, "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
