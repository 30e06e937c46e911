package api_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// Clients that are generated from the document compile as they are, start a run and read what it came to; and
// their types are those of the document.
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
			out, err := runIn(t, dir, bin, r.token, append(g.run, "http://"+r.addr, "hello from "+g.lang)...)
			if want := "SUCCEEDED re: hello from " + g.lang + "\n"; err != nil || out != want {
				t.Errorf("the program printed %q, %v, want %q", out, err, want)
			}
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
