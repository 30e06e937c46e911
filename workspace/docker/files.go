package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/workspace"
)

// Files are read and written by commands that run as the workspace's user. So a
// file tool can do exactly what a command can, whatever links a model has made;
// nothing on the host opens a path of a workspace. The scripts need a POSIX shell,
// and readlink, stat, find and the like as busybox and GNU have them.

const (
	scriptTime = 2 * time.Minute
	maxRead    = 64 << 20 // bytes of a file
	maxListing = 32 << 20 // bytes of the names of all files
)

// The exit codes by which scripts say what is the matter.
const (
	exitNotFound = 64 + iota
	exitOutside
	exitFolder
	exitTooBig
	exitSpecial
	exitFull
)

// inside is the part of all scripts that resolves a path: $p becomes the real one
// of $1, which must be in the workspace.
const inside = `
outside() { case "$1/" in ` + home + `/*) return 1;; esac; }
p=$(readlink -f -- "$1") && [ -n "$p" ] || exit 64
outside "$p" && exit 65
`

// script runs a script and returns what it wrote, at most max bytes, and its exit
// code, which is an error unless the script says 0. Where it comes from stdin, see
// scriptFrom.
func (w *Workspace) script(ctx context.Context, text string, stdin []byte, max int64, args ...string) (out []byte, code int, err error) {
	err = w.again(ctx, func() (err error) {
		var in io.Reader
		if stdin != nil {
			in = bytes.NewReader(stdin)
		}
		out, code, err = w.scriptFrom(ctx, text, in, max, args...)
		return err
	})
	return out, code, err
}

func (w *Workspace) scriptFrom(ctx context.Context, text string, stdin io.Reader, max int64, args ...string) ([]byte, int, error) {
	r, err := w.start(ctx, workspace.Command{Args: append([]string{"/bin/sh", "-c", text, "sh"}, args...)}, stdin != nil)
	if err != nil {
		return nil, 0, err
	}
	defer r.stream.Close()
	stop := context.AfterFunc(ctx, r.stream.Close)
	defer stop()
	fed := make(chan error, 1)
	go func() {
		if stdin == nil {
			fed <- nil
			return
		}
		_, err := io.Copy(r.stream.Conn, stdin)
		_ = r.stream.CloseWrite()
		fed <- err
	}()
	out := &bounded{max: max}
	errs := workspace.NewOutput(nil)
	if err := frames(r.stream.Reader, out, errs.Stream()); err != nil || ctx.Err() != nil {
		return nil, 0, w.e.fault(ctx, "run a command for a file", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	errs.Close()
	r.said = func() string { return out.b.String() + errs.String() }
	code, err := r.exit(ctx)
	if errors.Is(err, errNotBegun) {
		err = &workspace.Error{Code: workspace.Gone, Text: "the workspace was stopped meanwhile; try again", Err: err}
	}
	if err != nil {
		return nil, 0, err
	}
	if code == 0 && stdin != nil {
		if err := <-fed; err != nil {
			return nil, 0, w.e.fault(ctx, "write a file", err)
		}
	}
	if code == 0 && out.over {
		code = exitTooBig
	}
	if code != 0 {
		return nil, code, &workspace.Error{Code: workspace.Failed, Text: "the workspace could not do that: " + firstLine(errs.String(), code)}
	}
	return out.b.Bytes(), 0, nil
}

func firstLine(text string, code int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return clip(cmp.Or(text, "exit code "+strconv.Itoa(code)), 200)
}

type bounded struct {
	b    bytes.Buffer
	max  int64
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(int64(len(p)), b.max-int64(b.b.Len()))
	b.over = b.over || n < int64(len(p))
	b.b.Write(p[:n])
	return len(p), nil
}

func (w *Workspace) file(ctx context.Context, text, name string, stdin []byte, max int64, args ...string) ([]byte, error) {
	below, err := workspace.Clean(home, name)
	if err != nil {
		return nil, err
	}
	w.slot.using.RLock()
	defer w.slot.using.RUnlock()
	call, cancel := context.WithTimeoutCause(ctx, scriptTime, &workspace.Error{Code: workspace.WallLimit, Text: "the file cannot be reached in time"})
	defer cancel()
	out, code, err := w.script(call, text, stdin, max, append([]string{path.Join(home, below)}, args...)...)
	if err == nil {
		return out, nil
	}
	fail := func(c workspace.Code, format string, args ...any) error {
		return &workspace.Error{Code: c, Text: fmt.Sprintf(format, args...), Err: err}
	}
	switch code {
	case exitNotFound:
		return nil, fail(workspace.NotFound, "there is no %.200q in the workspace", name)
	case exitOutside:
		return nil, fail(workspace.Outside, "%.200q leads out of the workspace", name)
	case exitFolder:
		return nil, fail(workspace.Failed, "%.200q is a folder", name)
	case exitTooBig:
		return nil, fail(workspace.TooBig, "%.200q has more than %d bytes", name, max)
	case exitSpecial:
		return nil, fail(workspace.Failed, "%.200q is not a regular file", name)
	case exitFull:
		return nil, fail(workspace.DiskLimit, "there is no space left in the workspace; remove files first")
	}
	return nil, err
}

// ReadFile implements workspace.Workspace.
func (w *Workspace) ReadFile(ctx context.Context, name string, max int64) ([]byte, error) {
	max = min(max, maxRead)
	return w.file(ctx, inside+`
[ -e "$p" ] || exit 64
[ -d "$p" ] && exit 66
[ -f "$p" ] || exit 68
[ "$(stat -c %s -- "$p")" -le "$2" ] || exit 67
exec cat -- "$p"`, name, nil, max, strconv.FormatInt(max, 10))
}

// WriteFile implements workspace.Workspace. The content is written beside the file
// and put in its place, with the rights that it had.
func (w *Workspace) WriteFile(ctx context.Context, name string, content []byte) error {
	if len(content) > maxRead {
		return &workspace.Error{Code: workspace.TooBig, Text: fmt.Sprintf("a file has at most %d MiB", maxRead>>20)}
	}
	if err := w.room(ctx); err != nil {
		return err
	}
	if content == nil {
		content = []byte{}
	}
	_, err := w.file(ctx, `
outside() { case "$1/" in `+home+`/*) return 1;; esac; }
t=$1
if [ -L "$t" ]; then t=$(readlink -f -- "$t") || exit 65; outside "$t" && exit 65; fi
d=${t%/*}
while [ ! -e "$d" ] && [ ! -L "$d" ]; do d=${d%/*}; done
r=$(readlink -f -- "$d") || exit 65
outside "$r" && exit 65
mkdir -p -- "${t%/*}" || exit 66
r=$(readlink -f -- "${t%/*}") || exit 64
outside "$r" && exit 65
p=$r/${t##*/}
[ -d "$p" ] && exit 66
[ -e "$p" ] && [ ! -f "$p" ] && exit 68
n=$(mktemp "$r/.claybot-XXXXXX") || exit 69
trap 'rm -f -- "$n"' EXIT
cat > "$n" || exit 69
[ "$(stat -c %s -- "$n")" = "$2" ] || exit 69
if [ -f "$p" ]; then chmod "$(stat -c %a -- "$p")" "$n"; else chmod 644 "$n"; fi
mv -f -- "$n" "$p" || exit 69`, name, content, 64, strconv.Itoa(len(content)))
	return err
}

// Remove implements workspace.Remover.
func (w *Workspace) Remove(ctx context.Context, name string) error {
	if below, err := workspace.Clean(home, name); err == nil && below == "." {
		return &workspace.Error{Code: workspace.Refused, Text: "the workspace itself is not removed by this; name a file or folder in it"}
	}
	_, err := w.file(ctx, `
outside() { case "$1/" in `+home+`/*) return 1;; esac; }
[ -e "${1%/*}" ] || exit 0
r=$(readlink -f -- "${1%/*}") || exit 0
outside "$r" && exit 65
rm -rf -- "$r/${1##*/}"`, name, nil, 64)
	return err
}

// List implements workspace.Workspace. Names with a line break are left out, and so
// is what claybot keeps there itself.
func (w *Workspace) List(ctx context.Context, dir string, max int) ([]workspace.File, bool, error) {
	below, err := workspace.Clean(home, dir)
	if err != nil {
		return nil, false, err
	}
	out, err := w.file(ctx, inside+`
[ -e "$p" ] || exit 64
[ -d "$p" ] || exit 68
cd "$p" || exit 64
find . -mindepth 1 -path ./.claybot -prune -o \( -type d -o -type f \) -exec stat -c '%f %s %Y %n' {} + 2>/dev/null
exit 0`, dir, nil, maxListing)
	if err != nil {
		return nil, false, err
	}
	var all []workspace.File
	for line := range strings.Lines(string(out)) {
		if f, ok := listed(strings.TrimSuffix(line, "\n")); ok {
			f.Path = path.Join(below, f.Path)
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b workspace.File) int { return cmp.Compare(a.Path, b.Path) })
	if len(all) > max {
		return all[:max], true, nil
	}
	return all, false, nil
}

func listed(line string) (f workspace.File, ok bool) {
	mode, rest, _ := strings.Cut(line, " ")
	size, rest, _ := strings.Cut(rest, " ")
	at, name, ok := strings.Cut(rest, " ")
	m, err := strconv.ParseUint(mode, 16, 32)
	n, err2 := strconv.ParseInt(size, 10, 64)
	t, err3 := strconv.ParseInt(at, 10, 64)
	if !ok || errors.Join(err, err2, err3) != nil || !strings.HasPrefix(name, "./") {
		return f, false
	}
	const kind, folder = 0xf000, 0x4000
	f = workspace.File{Path: name[2:], Dir: m&kind == folder, At: time.Unix(t, 0).UTC()}
	if !f.Dir {
		f.Size = n
	}
	return f, true
}
