package devices_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot/devices"
)

func TestHosts(t *testing.T) {
	tests := []struct {
		hosts   string // separated by blanks
		address string
		want    bool
	}{
		{"example.com", "http://example.com/", true},
		{"example.com", "https://example.com:443/a?b#c", true},
		{"example.com", "https://EXAMPLE.com./", true},
		{"Example.COM.", "wss://example.com/socket", true},
		{"example.com", "http://example.com:8080/", false},
		{"example.com:8080", "http://example.com:8080/", true},
		{"example.com:8080", "http://example.com/", false},
		{"example.com:80", "http://example.com/", true},
		{"example.com:80", "https://example.com/", false},
		{"example.com", "http://evil.example.com/", false},
		{"*.example.com", "http://a.b.example.com/", true},
		{"*.example.com", "http://example.com/", false},
		{"*.example.com", "http://notexample.com/", false},
		{"example.com", "http://example.com.evil.test/", false},
		{"example.com", "http://example.com@evil.test/", false},
		{"example.com", "http://user:pass@example.com/", false},
		{"example.com", "ftp://example.com/", false},
		{"example.com", "file:///etc/passwd", false},
		{"example.com", "data:text/html,hi", false},
		{"example.com", "chrome://settings", false},
		{"example.com", "javascript:alert(1)", false},
		{"example.com", "http:example.com", false},
		{"example.com", "//example.com/", false},
		{"example.com", "", false},
		{"example.com", "http://exämple.com/", false},
		{"127.0.0.1:3000 [::1]:3000", "http://127.0.0.1:3000/", true},
		{"127.0.0.1:3000 [::1]:3000", "http://[::1]:3000/", true},
		{"[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000/", true},
		{"127.0.0.1:3000", "http://127.0.0.1:3001/", false},
		{"127.0.0.1:3000", "http://localhost:3000/", false},
		{"", "http://example.com/", false},
	}
	for _, tt := range tests {
		hosts, err := devices.ParseHosts(strings.Fields(tt.hosts))
		if err != nil {
			t.Errorf("%s: %v", tt.hosts, err)
			continue
		}
		if got := hosts.AllowsURL(tt.address); got != tt.want {
			t.Errorf("%s allows %s: %v, want %v", tt.hosts, tt.address, got, tt.want)
		}
	}
}

func TestBadHosts(t *testing.T) {
	for _, bad := range []string{"", " ", "*", "*.", "http://example.com", "example.com/", "example.com:0", "example.com:x", "example.com:70000", "a b", "exämple.com", "a@b", "1:2:3:zz", "a.*.b", "*.com", "*.COM.", "*.com:443", "*.localhost"} {
		hosts, err := devices.ParseHosts([]string{"fine.test", bad})
		if err == nil {
			t.Errorf("%q is taken as %s", bad, hosts)
		} else if hosts.Len() != 0 {
			t.Errorf("%q: some hosts are allowed all the same", bad)
		}
	}
}

func TestHostsAddr(t *testing.T) {
	hosts, err := devices.ParseHosts([]string{"example.com", "local.test:81"})
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]bool{"example.com:443": true, "example.com:22": false, "local.test:81": true, "local.test": false, ":81": false, "": false} {
		if got := hosts.AllowsAddr(addr); got != want {
			t.Errorf("%q: %v", addr, got)
		}
	}
	if got, want := hosts.String(), "example.com, local.test:81"; got != want {
		t.Errorf("%q", got)
	}
}

// What an entry of a list says is what is allowed, and nothing about an address
// makes it panic or lets another host pass.
func FuzzHosts(f *testing.F) {
	f.Add("example.com", "http://example.com/")
	f.Add("*.a.b:8", "https://x.a.b:8/?q")
	f.Add("[::1]", "http://[::1%25eth0]/")
	f.Fuzz(func(t *testing.T, entry, address string) {
		hosts, err := devices.ParseHosts([]string{entry})
		if err != nil {
			return
		}
		again, err := devices.ParseHosts(strings.Split(hosts.String(), ", "))
		if err != nil || again.String() != hosts.String() {
			t.Fatalf("%q is written as %q, which is read as %q, %v", entry, hosts, again, err)
		}
		if hosts.AllowsURL(address) && hosts.AllowsURL("http://evil.test/") {
			t.Fatalf("%q allows another host", entry)
		}
	})
}

func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"http://a.test/x": "a.test", "https://a.test:8/x": "a.test:8", "ftp://a.test": "", "nothing": "", "http://": "", "http://[::1": "",
	} {
		if got, ok := devices.HostOf(address); got != want || ok != (want != "") {
			t.Errorf("%s: %q", address, got)
		}
	}
}

func TestBounded(t *testing.T) {
	long := strings.Repeat("é", 5000)
	s := devices.Screen{ID: "x", Title: "a\x1b[2J \u202e b\n" + long, Text: "one\ntwo\x00" + long, PNG: make([]byte, devices.MaxPNG+1)}
	for range 100 {
		s.Actions = append(s.Actions, devices.Action{ID: string(rune('a' + len(s.Actions)%70)), Label: long, Options: []string{long}})
		s.Faults = append(s.Faults, string(rune('a'+len(s.Faults)))+long)
	}
	s.Actions = append(s.Actions, devices.Action{Label: "no id"})
	s.Faults = append([]string{"same", "same", " "}, s.Faults...)
	got := devices.Bounded(s)
	if len(got.Title) > devices.MaxLabel || strings.ContainsAny(got.Title, "\x1b\n\u202e") || !utf8.ValidString(got.Title) {
		t.Errorf("title %q", got.Title)
	}
	if len(got.Text) > devices.MaxText || !strings.HasPrefix(got.Text, "one\ntwoé") {
		t.Errorf("text %.20q", got.Text)
	}
	if got.PNG != nil || len(got.Actions) != devices.MaxActions || len(got.Faults) != devices.MaxFaults || got.Faults[0] != "same" || strings.HasPrefix(got.Faults[1], "same") {
		t.Errorf("%d actions, faults %.20q", len(got.Actions), got.Faults)
	}
	for _, a := range got.Actions {
		if len(a.Label) > devices.MaxLabel || len(a.Options[0]) > devices.MaxLabel {
			t.Fatalf("action %d, %d bytes", len(a.Label), len(a.Options[0]))
		}
	}
}

func TestPlain(t *testing.T) {
	for address, want := range map[string]string{
		"https://u:p@a.test/x?token=1#f": "https://a.test/x", "http://a.test": "http://a.test", "http://a.test/%zz": "",
	} {
		if got := devices.Plain(address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

func TestError(t *testing.T) {
	cause := errors.New("cause")
	var err error = &devices.Error{Text: "it is gone", Crash: true, Err: cause}
	if got, want := err.Error(), "device crashed: it is gone"; got != want || !errors.Is(err, cause) {
		t.Errorf("%q", got)
	}
	if got, want := devices.Failed("no %s", "button").Error(), "device: no button"; got != want {
		t.Errorf("%q", got)
	}
	if !devices.Crashed("x").Crash {
		t.Error("no crash")
	}
}
