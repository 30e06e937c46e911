package chromium

import (
	"net"
	"net/url"
	"path"
	"strings"

	"github.com/claybot/claybot/devices"
)

// A reach is what the pages of a browser may reach.
type reach struct {
	hosts devices.Hosts
	// web is every address of the web, loopback all addresses of the machine that
	// the browser runs on, data pages that are written in their address.
	web, loopback, data bool
	// files is the absolute path of a folder whose files may be shown; empty: none.
	files string
}

func (r reach) allows(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "file":
		return r.file(u)
	case "data":
		return r.data
	case "http", "https", "ws", "wss":
		if u.User != nil || u.Opaque != "" || u.Hostname() == "" {
			return false
		}
		if local(u.Hostname()) {
			return r.loopback || r.hosts.Allows(u)
		}
		return r.web || r.hosts.Allows(u)
	}
	return false
}

// file reports whether an address is that of a file below the folder. A browser
// takes a backslash for a slash, so none may stand in it.
func (r reach) file(u *url.URL) bool {
	if r.files == "" || u.Host != "" || u.Opaque != "" || u.User != nil || strings.ContainsAny(u.Path, "\\\x00") {
		return false
	}
	name := path.Clean(u.Path)
	return path.IsAbs(u.Path) && (name == r.files || strings.HasPrefix(name, strings.TrimSuffix(r.files, "/")+"/"))
}

// local reports whether a host is the machine that asks.
func local(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// resolve is an address as a browser takes it: file:NAME is a file of the folder.
func (r reach) resolve(address string) string {
	name, isFile := strings.CutPrefix(address, "file:")
	if r.files == "" || !isFile || strings.HasPrefix(name, "/") {
		return address
	}
	name, tail := name, ""
	if i := strings.IndexAny(name, "?#"); i >= 0 {
		name, tail = name[:i], name[i:]
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	u := url.URL{Scheme: "file", Path: path.Join(r.files, name)}
	return u.String() + tail
}

// refusal says why an address is not reached, and what to do about it.
func (r reach) refusal(address string) *devices.Error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return devices.Failed("this is not an address")
	case r.files == "":
		return devices.Failed("%s is not within %s", devices.Plain(address), r.hosts)
	case u.Scheme == "file":
		return devices.Failed("only files below %s can be opened", r.files)
	case u.Scheme != "http" && u.Scheme != "https":
		return devices.Failed("addresses of this kind are not opened; write http, https, or file: for a file of the workspace")
	case u.User != nil:
		return devices.Failed("an address with a name and a password is not opened")
	case r.hosts.Len() == 0:
		return devices.Failed("%s cannot be reached: this workspace has no network; an operator can allow hosts in the configuration, under workspaces, network", u.Host)
	}
	return devices.Failed("%s cannot be reached from this workspace, only %s can; an operator can allow more in the configuration, under workspaces, network", u.Host, r.hosts)
}
