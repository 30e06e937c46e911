package chromium

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/workspace"
)

// A Remote opens devices whose browser runs in a workspace. It is spoken with over
// the pipe of the command that it is: no port is open, neither in the workspace
// nor here, and another process cannot join in.
//
// A page may show the files below the directory of the workspace, pages that are
// written in their address (data:), and the Hosts of the Spec. Requests for
// anything else are stopped in the browser; and whatever gets around that reaches
// what the workspace reaches, no more.
//
// What comes out of the workspace is not trusted: a message of the browser is
// bounded, and one that is no message ends the browser.
type Remote struct {
	Workspace workspace.Workspace
	// Machine: the workspace is a machine of its own, such as a container. Then its
	// loopback addresses may be reached, as what listens there is the agent's own.
	// The browser has no sandbox of its own in it: that needs rights which such a
	// workspace does not have, and the workspace is the sandbox. Without Machine, the
	// browser keeps its own, and does not start as root.
	Machine bool
	// Proxy is host:port of the only way out; empty: there is none, or Web.
	Proxy string
	// Web: every address of the web may be reached, for a workspace whose network is
	// not limited.
	Web bool
	Log *slog.Logger // nil discards

	dir string
}

// Open is a devices.Open. The browser is started by Launch.
func (r Remote) Open(ctx context.Context, s devices.Spec) (devices.Device, error) {
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	res, err := r.Workspace.Exec(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", "pwd"}, Wall: time.Minute})
	if err != nil {
		return nil, troubled(ctx, err)
	}
	r.dir = strings.TrimSpace(res.Output)
	if !path.IsAbs(r.dir) || path.Clean(r.dir) != r.dir || strings.ContainsAny(r.dir, "\n\x00") {
		return nil, devices.Failed("the workspace does not say where its files are")
	}
	d := &device{
		spec: s, remote: &r, log: r.Log,
		reach: reach{hosts: s.Hosts, web: r.Web, loopback: r.Machine, data: true, files: r.dir},
	}
	if address := d.reach.resolve(s.URL); !d.reach.allows(address) {
		return nil, d.reach.refusal(address)
	}
	return d, nil
}

// troubled is an error of a workspace as one of a device. The end of ctx stays
// what it is.
func troubled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*workspace.Error](err); ok {
		return &devices.Error{Text: e.Text, Err: err}
	}
	return &devices.Error{Text: "the workspace cannot run a browser", Err: err}
}

// missing is the exit code of the script where there is no browser.
const missing = 127

// sweeping removes the profiles that killed browsers have left over: those that no
// process names. Their names go through a pipe, so that the search does not find
// itself.
const sweeping = `for old in /tmp/claybot-browser-*; do
	if [ -d "$old" ] && ! echo "$old" | grep -qsFf - /proc/[0-9]*/cmdline; then rm -rf "$old"; fi
done
`

// starting runs the browser: $1 is the folder for its profile, the rest are its
// arguments. What it says through its pipes goes through stdin and stdout. Its end
// takes the profile away.
const starting = `dir=$1
shift
for name in chromium chromium-browser google-chrome google-chrome-stable chrome headless_shell chrome-headless-shell; do
	program=$(command -v "$name") && break
done
[ -n "$program" ] || exit 127
umask 077
mkdir "$dir" || exit 126
trap 'rm -rf "$dir"' EXIT
trap 'exit 143' TERM HUP INT
export HOME="$dir" XDG_CONFIG_HOME="$dir" XDG_CACHE_HOME="$dir" TMPDIR="$dir" LANG=C.UTF-8
"$program" --user-data-dir="$dir/profile" "$@" 3<&0 4>&1 </dev/null >/dev/null
`

func (r *Remote) command() workspace.Command {
	script := starting
	if r.Machine {
		script = sweeping + starting
	}
	args := []string{"/bin/sh", "-c", script, "claybot-browser", "/tmp/claybot-browser-" + strings.ToLower(rand.Text()), "--remote-debugging-pipe", "--no-startup-window"}
	for _, f := range append(usual[:len(usual):len(usual)], careful...) {
		args = append(args, "--"+f)
	}
	rules := "MAP * ~NOTFOUND"
	if r.Machine {
		// Fewer processes and threads: a workspace has a limit of both.
		args = append(args, "--no-sandbox", "--no-zygote", "--renderer-process-limit=4")
		rules += " , EXCLUDE localhost , EXCLUDE *.localhost , EXCLUDE 127.0.0.1 , EXCLUDE [::1]"
	}
	switch {
	case r.Proxy != "":
		host, _, _ := strings.Cut(r.Proxy, ":")
		args = append(args, "--proxy-server=http://"+r.Proxy, "--host-resolver-rules="+rules+" , EXCLUDE "+host)
		if !r.Machine {
			args = append(args, "--proxy-bypass-list=<-loopback>")
		}
	case !r.Web:
		args = append(args, "--host-resolver-rules="+rules)
	}
	return workspace.Command{Args: append(args, "about:blank")}
}

func (r *Remote) seat(life context.Context, log *slog.Logger) seat {
	p := &piped{start: func() (workspace.Process, error) { return r.Workspace.Pipe(life, r.command()) }}
	alloc, cancel := chromedp.NewAllocatorContext(life, p)
	return seat{ctx: alloc, close: p.close, freed: func() { cancel(); p.Wait() }, fault: func(err error) error {
		if e, ok := errors.AsType[*workspace.Error](err); ok {
			return &devices.Error{Text: e.Text, Err: err}
		}
		code, said := p.ended()
		if code == missing {
			return &devices.Error{Text: "this workspace has no browser: its image is without Chromium; an operator can choose one that has it in the configuration, under workspaces, image", Err: err}
		}
		log.Error("the browser of a workspace does not start", "place", r.Workspace.Place(), "err", err, "code", code, "stderr", said)
		return &devices.Error{Text: "the browser of the workspace does not start; an operator finds the reason in the log", Err: err}
	}}
}
