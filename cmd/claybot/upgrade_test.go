package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// frozen are the versions whose data directories stand in testdata/upgrade, the
// oldest first, and what each was the first to have.
var frozen = []struct{ version, first string }{
	{"064de30", ""},
	{"9c5ad07", "questions"},
	{"f8087b1", "notes"},
}

// TestUpgrade opens what older versions left behind after kill -9.
func TestUpgrade(t *testing.T) {
	endScriptServer(t)
	had := []string{}
	for _, f := range frozen {
		had = append(had, f.first)
		features := slices.Clone(had)
		t.Run(f.version, func(t *testing.T) {
			fixture, err := filepath.Abs("testdata/upgrade/" + f.version)
			if err != nil {
				t.Fatal(err)
			}
			p := scripts("testdata/upgrade")
			setup := p.Setup
			p.Setup = func(e *testscript.Env) error {
				e.Setenv("FROZEN", fixture)
				return setup(e)
			}
			p.Condition = func(name string) (bool, error) {
				if dump, ok := strings.CutPrefix(name, "dump:"); ok {
					_, err := os.Stat(fixture + "." + dump)
					return err == nil, nil
				}
				return slices.Contains(features, name), nil
			}
			testscript.Run(t, p)
		})
	}
}

// unpack makes a directory of an archive: unpack FILE DIR.
func unpack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unpack FILE DIR")
	}
	archive := tar.NewReader(strings.NewReader(unzipped(ts, args[0])))
	dir := ts.MkAbs(args[1])
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		ts.Check(err)
		if !filepath.IsLocal(h.Name) {
			ts.Fatalf("%s leads out of the archive", h.Name)
		}
		name := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			ts.Check(os.MkdirAll(name, 0o700))
			continue
		}
		b, err := io.ReadAll(archive)
		ts.Check(err)
		ts.Check(os.WriteFile(name, b, 0o600))
	}
}

func unzipped(ts *testscript.TestScript, name string) string {
	f, err := os.Open(ts.MkAbs(name))
	ts.Check(err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	ts.Check(err)
	b, err := io.ReadAll(z)
	ts.Check(err)
	return string(b)
}

// dumped is the SQL of a dump, without the commands of psql.
func dumped(ts *testscript.TestScript, name string) string {
	lines := strings.SplitAfter(unzipped(ts, name), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, `\`) }), "")
}

// callAPI calls the daemon as a program does, with the rights of the owner: api
// METHOD PATH [JSON]. The answer becomes the standard output.
func callAPI(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] api METHOD PATH [JSON]")
	}
	c, err := dial(ts.Getenv("CLAYBOT_DATA_DIR"))
	ts.Check(err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var in any
	if len(args) == 3 {
		in = json.RawMessage(args[2])
	}
	var out json.RawMessage
	if err := c.call(ctx, args[0], args[1], in, &out); err != nil {
		if neg {
			out = json.RawMessage(err.Error())
		} else {
			ts.Check(err)
		}
	} else if neg {
		ts.Fatalf("%s %s was accepted: %s", args[0], args[1], out)
	}
	_, err = ts.Stdout().Write(out)
	ts.Check(err)
}
