package main

import "testing"

// TestTunnel holds that a person who is connected by SSH gets a command that reaches a page of
// this machine alone, and no one else gets one.
func TestTunnel(t *testing.T) {
	const near = "http://127.0.0.1:8420/login?token=x"
	for _, c := range []struct{ link, ssh, want string }{
		{near, "", ""},
		{near, "198.51.100.7 50000 203.0.113.5 22", "ssh -N -L 8420:127.0.0.1:8420 ann@203.0.113.5"},
		{near, "198.51.100.7 50000 203.0.113.5 2222", "ssh -N -L 8420:127.0.0.1:8420 -p 2222 ann@203.0.113.5"},
		{near, "192.168.1.7 50000 192.168.1.5 22", "ssh -N -L 8420:127.0.0.1:8420 ann@192.168.1.5"},
		// A server behind a translation of addresses does not know its own.
		{near, "198.51.100.7 50000 10.0.0.5 2222", "ssh -N -L 8420:127.0.0.1:8420 ann@HOST"},
		{near, "2001:db8::7 50000 2001:db8::5 22", "ssh -N -L 8420:127.0.0.1:8420 ann@2001:db8::5"},
		{"http://[::1]:9000/login", "198.51.100.7 50000 203.0.113.5 22", "ssh -N -L 9000:[::1]:9000 ann@203.0.113.5"},
		{"https://localhost/login", "198.51.100.7 50000 203.0.113.5 22", "ssh -N -L 443:localhost:443 ann@203.0.113.5"},
		{"https://chat.example.org/login", "198.51.100.7 50000 203.0.113.5 22", ""},
		{"http://203.0.113.5:8420/login", "198.51.100.7 50000 203.0.113.5 22", ""},
		{near, "$(reboot) 50000 203.0.113.5 22", ""},
		{near, "198.51.100.7 50000 203.0.113.5", ""},
		{near, "198.51.100.7 50000 203.0.113.5 22;reboot", ""},
	} {
		if got := tunnel(c.link, c.ssh, "ann"); got != c.want {
			t.Errorf("%s over %q: %q, want %q", c.link, c.ssh, got, c.want)
		}
	}
}
