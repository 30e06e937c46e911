package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/service"
)

// A file is one of an archive; a name with a slash at its end is a directory.
type file struct {
	name string
	data []byte
	mode int64
}

// writeTarGz writes files below a directory, sorted, with the directories they need, all of
// root and of one time.
func writeTarGz(w io.Writer, below string, files []file, at time.Time) error {
	zip, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	all := map[string]file{below: {mode: 0o755}}
	for _, f := range files {
		all[below+f.name] = f
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "."; dir = path.Dir(dir) {
			all[below+dir+"/"] = file{mode: 0o755}
		}
	}
	t := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		h := &tar.Header{Name: name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		h.Typeflag = tar.TypeReg
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// postinst creates the user of the service. It starts nothing: what the service is to do is
// not known yet. An upgrade restarts a service that runs.
const postinst = `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
getent passwd claybot >/dev/null || useradd --system --user-group --home-dir /var/lib/claybot --no-create-home --shell /usr/sbin/nologin claybot
[ -d /var/lib/claybot ] || install -d -m 0700 -o claybot -g claybot /var/lib/claybot
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart claybot.service
fi
`

// prerm stops the service before its program goes. The data stays.
const prerm = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now claybot.service
fi
`

// deb returns a Debian package of the files of a release: deb(5).
func (r *release) deb(arch string, files []file) ([]byte, error) {
	unit := service.Service{
		Program: "/usr/bin/claybot", Args: []string{"serve", "--data-dir", "/var/lib/claybot"}, Dir: "/var/lib/claybot", User: "claybot",
		Path: "/usr/local/bin:/usr/bin:/bin",
	}.Systemd("/etc/claybot/service.env")
	_, unit, _ = strings.Cut(unit, "\n") // a comment of claybot service install
	places := map[string]string{
		"claybot": "usr/bin/claybot", "LICENSE": "usr/share/doc/claybot/copyright", "README.md": "usr/share/doc/claybot/README.md",
		"CHANGELOG.md": "usr/share/doc/claybot/CHANGELOG.md", "claybot.example.yaml": "usr/share/doc/claybot/claybot.example.yaml",
		"THIRD_PARTY_LICENSES":     "usr/share/doc/claybot/THIRD_PARTY_LICENSES",
		"claybot.1":                "usr/share/man/man1/claybot.1",
		"completions/claybot.bash": "usr/share/bash-completion/completions/claybot",
		"completions/claybot.fish": "usr/share/fish/vendor_completions.d/claybot.fish",
		"completions/_claybot":     "usr/share/zsh/vendor-completions/_claybot",
	}
	all := []file{
		{"etc/claybot/", nil, 0o755},
		{"usr/lib/systemd/system/claybot.service", []byte(unit), 0o644},
	}
	size := 0
	for _, f := range files {
		all = append(all, file{places[f.name], f.data, f.mode})
		size += len(f.data)
	}
	control := fmt.Sprintf(`Package: claybot
Version: %s
Architecture: %s
Maintainer: claybot <https://github.com/claybot/claybot/issues>
Installed-Size: %d
Depends: passwd
Recommends: ca-certificates
Section: net
Priority: optional
Homepage: https://github.com/claybot/claybot
Description: connects AI agents to chats
 claybot is a daemon that connects AI agents to Telegram, Slack, Discord, a web
 page and a terminal, and loses no message.
`, debVersion(r.version), arch, size/1024)
	members := [][]file{{{"control", []byte(control), 0o644}, {"postinst", []byte(postinst), 0o755}, {"prerm", []byte(prerm), 0o755}}, all}
	b := bytes.NewBufferString("!<arch>\n")
	r.member(b, "debian-binary", []byte("2.0\n"))
	for i, name := range []string{"control.tar.gz", "data.tar.gz"} {
		var archive bytes.Buffer
		if err := writeTarGz(&archive, "./", members[i], r.time); err != nil {
			return nil, err
		}
		r.member(b, name, archive.Bytes())
	}
	return b.Bytes(), nil
}

// member appends a member to an ar archive.
func (r *release) member(b *bytes.Buffer, name string, data []byte) {
	fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, r.time.Unix(), 0, 0, "100644", len(data))
	b.Write(data)
	if len(data)%2 == 1 {
		b.WriteByte('\n')
	}
}

var (
	numbered   = regexp.MustCompile(`^\d+\.`)
	candidates = strings.NewReplacer("-rc", "~rc", "-beta", "~beta", "-", "+")
)

// debVersion is a version as Debian compares it: candidates before their release, commits
// after it, and what has no number before everything else.
func debVersion(v string) string {
	v = strings.TrimPrefix(v, "v")
	if !numbered.MatchString(v) {
		v = "0~" + v
	}
	return candidates.Replace(v)
}
