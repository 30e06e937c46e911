package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/web"
)

type openCmd struct {
	Browser bool `short:"b" help:"Open the link in the browser of this desktop as well. Other users of the machine may see the command line of a browser."`
}

// Run prints a link that logs one browser in.
func (c openCmd) Run(e *env) error {
	link, err := ask[web.LoginLink](e, "POST", to("/login-link"), nil)
	if err != nil {
		return err
	}
	if link.Alone {
		fmt.Fprintln(e.err, "claybot: the database does not respond, so the link works on this member only")
	}
	text := link.URL + "\n"
	for _, way := range e.otherWays(link) {
		text += way[0] + ": " + way[1] + "\n"
	}
	if err := e.text(text); err != nil || !c.Browser {
		return err
	}
	return browse(cmp.Or(link.Local, link.URL))
}

// browse opens a link in the browser of the desktop.
func browse(link string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, program, link)
	c.WaitDelay = time.Second // a browser that it starts has its output as well
	if out, err := c.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("failed to open a browser: %w", cmp.Or(errorOf(string(out)), err))
	}
	return nil
}

// errorOf returns what a program said as an error; nil for nothing.
func errorOf(said string) error {
	if said = oneLine(plain(said)); said != "" {
		return errors.New(said)
	}
	return nil
}

// invite prints where to chat; without a terminal, the log says how to get there.
func (e *env) invite(log *slog.Logger, link web.LoginLink) {
	w := e.terminal()
	if w == nil {
		log.Info("login links are printed on a terminal only", "next", "claybot open")
		return
	}
	fmt.Fprintf(w, "\n  Chat in the browser:  %s\n", link.URL)
	for _, way := range e.otherWays(link) {
		fmt.Fprintf(w, "  %-21s %s\n", strings.ToUpper(way[0][:1])+way[0][1:]+":", way[1])
	}
	fmt.Fprint(w, "  Chat in the terminal: claybot chat\n\n")
}

// otherWays returns where else a link works, as labels and links, and what makes it work for a
// reader who is at another machine.
func (e *env) otherWays(link web.LoginLink) [][2]string {
	var all [][2]string
	if link.Local != "" {
		all = append(all, [2]string{"on this machine", link.Local})
	}
	if link.Elsewhere != "" {
		all = append(all, [2]string{"on another device", link.Elsewhere})
	}
	name := "USER"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	ssh, _ := e.lookup("SSH_CONNECTION")
	if command := tunnel(link.URL, ssh, name); command != "" {
		all = append(all, [2]string{"over SSH", "first run on your computer: " + command})
	}
	return all
}

// tunnel returns the command with which the person behind an SSH connection, as the variable
// SSH_CONNECTION has it, reaches a link for this machine; empty if that is not needed. The
// page serves no other port than its own, so the tunnel begins at the same one.
func tunnel(link, ssh, name string) string {
	f := strings.Fields(ssh) // the client with its port, the server with its port
	u, err := url.Parse(link)
	if err != nil || len(f) != 4 {
		return ""
	}
	client, err := netip.ParseAddr(f[0])
	server, err2 := netip.ParseAddr(f[2])
	_, err3 := strconv.ParseUint(f[3], 10, 16)
	if err = errors.Join(err, err2, err3); err != nil {
		return ""
	}
	if page, bad := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" && (bad != nil || !page.IsLoopback()) {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	command := fmt.Sprintf("ssh -N -L %s:%s", port, net.JoinHostPort(u.Hostname(), port))
	if server.IsPrivate() && !client.IsPrivate() && !client.IsLoopback() {
		return command + " " + name + "@HOST" // behind a translation of addresses: the client knows the name
	}
	if f[3] != "22" {
		command += " -p " + f[3]
	}
	return command + " " + name + "@" + server.String()
}
