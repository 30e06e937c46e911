package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestRelease builds the release of this platform twice, under other circumstances, and
// compares all bytes; then it looks into the files.
func TestRelease(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	arch := runtime.GOARCH
	program := filepath.Join(t.TempDir(), "release") // without the race detector, in which compressing takes minutes
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/release").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build := func() string {
		dir := t.TempDir()
		c := exec.CommandContext(t.Context(), program, "-version", "v1.2.0-rc1", "-out", dir, "-platforms", "linux/"+arch)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return dir
	}
	first := build()
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("GOFLAGS", "-buildvcs=true")
	t.Setenv("GOAMD64", "v2")
	t.Setenv("TMPDIR", t.TempDir())
	second := build()

	name := "claybot-v1.2.0-rc1-linux-" + arch
	deb := "claybot_1.2.0~rc1_" + arch + ".deb"
	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if !bytes.Equal(read(t, first, e.Name()), read(t, second, e.Name())) {
			t.Errorf("%s is not the same twice", e.Name())
		}
	}
	if want := []string{"SHA256SUMS", name + ".cdx.json", name + ".tar.gz", deb}; !slices.Equal(names, want) {
		t.Fatalf("files %q, want %q", names, want)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = first
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 3 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}

	packed := unpack(t, read(t, first, name+".tar.gz"))
	for _, want := range []string{"claybot", "LICENSE", "THIRD_PARTY_LICENSES", "README.md", "CHANGELOG.md", "claybot.example.yaml", "claybot.1", "completions/claybot.bash", "completions/_claybot", "completions/claybot.fish"} {
		if packed[name+"/"+want] == "" {
			t.Errorf("the archive lacks %s", want)
		}
	}
	binary := filepath.Join(t.TempDir(), "claybot")
	if err := os.WriteFile(binary, []byte(packed[name+"/claybot"]), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), binary, "version").Output(); err != nil || string(out) != "claybot v1.2.0-rc1\n" {
		t.Errorf("version: %v, %s", err, out)
	}
	var list struct {
		BOMFormat  string
		Components []component
	}
	if err := json.Unmarshal(read(t, first, name+".cdx.json"), &list); err != nil || list.BOMFormat != "CycloneDX" ||
		!slices.ContainsFunc(list.Components, func(c component) bool {
			return strings.HasPrefix(c.PURL, "pkg:golang/github.com/alecthomas/kong@v")
		}) {
		t.Errorf("modules: %v, %d of %s", err, len(list.Components), list.BOMFormat)
	}

	members := unpackDeb(t, read(t, first, deb))
	control, data := unpack(t, members["control.tar.gz"]), unpack(t, members["data.tar.gz"])
	if !strings.Contains(control["./control"], "\nVersion: 1.2.0~rc1\nArchitecture: "+arch+"\n") || control["./postinst"] == "" || control["./prerm"] == "" {
		t.Errorf("control of the package: %q", control)
	}
	if unit := data["./usr/lib/systemd/system/claybot.service"]; !strings.Contains(unit, `ExecStart="/usr/bin/claybot" "serve"`) || !strings.Contains(unit, "User=claybot\n") {
		t.Errorf("unit of the package:\n%s", unit)
	}
	for _, want := range []string{"usr/bin/claybot", "usr/share/man/man1/claybot.1", "usr/share/bash-completion/completions/claybot", "usr/share/doc/claybot/copyright"} {
		if data["./"+want] == "" {
			t.Errorf("the package lacks %s", want)
		}
	}
	if dpkg, err := exec.LookPath("dpkg-deb"); err == nil {
		if out, err := exec.CommandContext(t.Context(), dpkg, "--contents", filepath.Join(first, deb)).CombinedOutput(); err != nil || !strings.Contains(string(out), "root/root") {
			t.Errorf("dpkg-deb: %v\n%s", err, out)
		}
	}
}

// TestDebVersion orders what git describes as Debian compares it.
func TestDebVersion(t *testing.T) {
	for v, want := range map[string]string{
		"v1.2.0": "1.2.0", "v1.2.0-rc1": "1.2.0~rc1", "v1.2.0-3-gabc123-dirty": "1.2.0+3+gabc123+dirty", "abc123": "0~abc123", "820fd740": "0~820fd740", "dev": "0~dev",
	} {
		if got := debVersion(v); got != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unpack returns the files of a .tar.gz, which are sorted and have the time of the release.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files, last := make(map[string]string), ""
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF { //nolint:errorlint // documented
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		dir, _ := filepath.Split(strings.TrimSuffix(h.Name, "/"))
		if _, before := files[dir]; dir != "" && !before { // dpkg creates no directory that has no entry
			t.Errorf("%s stands before its directory", h.Name)
		}
		if h.ModTime.Unix() != 1700000000 || h.Uid != 0 || h.Name <= last {
			t.Errorf("%s of %d, at %s, after %s", h.Name, h.Uid, h.ModTime, last)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], last = string(data), h.Name
	}
}

// unpackDeb returns the members of a package.
func unpackDeb(t *testing.T, deb []byte) map[string][]byte {
	t.Helper()
	members := make(map[string][]byte)
	deb, ok := bytes.CutPrefix(deb, []byte("!<arch>\n"))
	for ok && len(deb) >= 60 {
		name := strings.TrimSpace(string(deb[:16]))
		size := 0
		for _, c := range strings.TrimSpace(string(deb[48:58])) {
			size = size*10 + int(c-'0')
		}
		members[name] = deb[60 : 60+size]
		deb = deb[60+size+size%2:]
	}
	if !ok || len(members) != 3 || string(members["debian-binary"]) != "2.0\n" {
		t.Fatalf("no package of three members: %d", len(members))
	}
	return members
}
