// Command release builds what a version of claybot is published as: for each platform a
// .tar.gz and a list of its modules, a .deb for Linux, and the checksums of all. The same
// commit and the same Go give the same bytes, on every machine and at any time: the binary
// knows no paths and no build, and all files have the time of the commit.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are those that claybot is published for.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

func main() {
	log.SetFlags(0)
	var r release
	chosen := flag.String("platforms", platforms, "platforms to build for")
	flag.StringVar(&r.out, "out", "dist", "directory of the files")
	flag.StringVar(&r.version, "version", "dev", "version of claybot")
	flag.Parse()
	r.platforms = strings.Split(*chosen, ",")
	if err := r.run(context.Background()); err != nil {
		log.Fatal("release: ", err)
	}
}

// A release is built from the tree in the working directory.
type release struct {
	version, out string
	platforms    []string
	time         time.Time
	written      []string // names of files
}

func (r *release) run(ctx context.Context) error {
	seconds, err := r.epoch(ctx)
	if err != nil {
		return err
	}
	r.time = time.Unix(seconds, 0).UTC()
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "claybot-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	shared, err := r.shared(ctx, tmp)
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		if err := r.platform(ctx, tmp, p, shared); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return r.sums()
}

// epoch is the time of all files: SOURCE_DATE_EPOCH, else that of the commit.
func (r *release) epoch(ctx context.Context) (int64, error) {
	said := os.Getenv("SOURCE_DATE_EPOCH")
	if said == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return 0, fmt.Errorf("this is no checkout, so set SOURCE_DATE_EPOCH: %w", err)
		}
		said = strings.TrimSpace(string(out))
	}
	return strconv.ParseInt(said, 10, 64)
}

// build builds the binary of a platform, once.
func (r *release) build(ctx context.Context, tmp, platform string) (string, error) {
	goos, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return "", errors.New("want a platform such as linux/amd64")
	}
	binary := filepath.Join(tmp, goos+"-"+arch)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", binary, "./cmd/claybot")
	// What else decides about the bytes is set to its default.
	c.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOENV=off", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	c.Stderr = os.Stderr
	return binary, c.Run()
}

// shared returns the files that all platforms have.
func (r *release) shared(ctx context.Context, tmp string) ([]file, error) {
	binary, err := r.build(ctx, tmp, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	page, err := exec.CommandContext(ctx, binary, "man").Output()
	if err != nil {
		return nil, fmt.Errorf("claybot man: %w", err)
	}
	all := []file{{"claybot.1", page, 0o644}}
	for name, path := range map[string]string{
		"LICENSE": "LICENSE", "THIRD_PARTY_LICENSES": licensesFile, "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "claybot.example.yaml": "configs/claybot.example.yaml",
		"completions/claybot.bash": "cmd/claybot/completions/claybot.bash",
		"completions/claybot.fish": "cmd/claybot/completions/claybot.fish",
		"completions/_claybot":     "cmd/claybot/completions/claybot.zsh",
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name, data, 0o644})
	}
	return all, nil
}

// platform writes the files of a platform.
func (r *release) platform(ctx context.Context, tmp, platform string, shared []file) error {
	binary, err := r.build(ctx, tmp, platform)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	goos, arch, _ := strings.Cut(platform, "/")
	name := fmt.Sprintf("claybot-%s-%s-%s", r.version, goos, arch)
	archive := bytes.NewBuffer(nil)
	all := append(slices.Clone(shared), file{"claybot", data, 0o755})
	if err := writeTarGz(archive, name+"/", all, r.time); err != nil {
		return err
	}
	list, err := sbom(binary, r.version, r.time)
	if err != nil {
		return err
	}
	err = errors.Join(r.write(name+".tar.gz", archive.Bytes()), r.write(name+".cdx.json", list))
	if err != nil || goos != "linux" {
		return err
	}
	deb, err := r.deb(arch, all)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("claybot_%s_%s.deb", debVersion(r.version), arch), deb)
}

func (r *release) write(name string, data []byte) error {
	r.written = append(r.written, name)
	fmt.Printf("%7.1f MB  %s\n", float64(len(data))/1e6, name)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644) //nolint:gosec // to be published
}

// sums writes the checksums of the release in the form of sha256sum.
func (r *release) sums() error {
	slices.Sort(r.written)
	var b strings.Builder
	for _, name := range r.written {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return r.write("SHA256SUMS", []byte(b.String()))
}
