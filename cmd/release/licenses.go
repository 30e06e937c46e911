package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licensesFile is built into claybot, which prints it.
const licensesFile = "cmd/claybot/THIRD_PARTY_LICENSES"

// licenseFile matches the files of a module that its users get a copy of.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([.-].*)?$`)

// licenses returns the whole licences of Go and of the modules that claybot is linked with on these
// platforms.
func licenses(ctx context.Context, platforms []string) ([]byte, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var modules []string
	for _, p := range platforms {
		goos, arch, _ := strings.Cut(p, "/")
		list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/claybot")
		list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", p, err)
		}
		modules = append(modules, strings.Split(strings.TrimSpace(string(out)), "\n")...)
	}
	slices.Sort(modules)
	modules = slices.Compact(modules)
	var b bytes.Buffer
	b.WriteString("claybot is linked with these. Each has its terms below its name.\n")
	for _, m := range append([]string{"Go\t" + strings.TrimSpace(string(root))}, modules...) {
		name, dir, _ := strings.Cut(m, "\t")
		if err := addLicenses(&b, name, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// addLicenses writes the licences in a directory. One without any is an error: it must not be
// published.
func addLicenses(b *bytes.Buffer, name, dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found := false
	for _, f := range all {
		if f.IsDir() || !licenseFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\r\n"), []byte("\n"))
		fmt.Fprintf(b, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), name, f.Name(), text)
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", name, filepath.Base(dir))
	}
	return nil
}
