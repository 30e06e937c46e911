package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// licenseFile matches the files of a module that its users get a copy of.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([.-].*)?$`)

// licenses returns the licences of Go and of the modules that are in a binary, whole.
func licenses(ctx context.Context, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	list := []string{"list", "-m", "-f", "{{.Path}} {{.Version}}\t{{.Dir}}"}
	for _, m := range info.Deps {
		list = append(list, m.Path)
	}
	dirs, err := exec.CommandContext(ctx, "go", list...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var b bytes.Buffer
	b.WriteString("claybot is linked with these. Each has the terms below its name.\n")
	for line := range strings.Lines("Go\t" + string(root) + string(dirs)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
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
		fmt.Fprintf(b, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), name, f.Name(), bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", name, filepath.Base(dir))
	}
	return nil
}
