package chromium_test

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/chromium"
)

func TestReach(t *testing.T) {
	hosts, err := devices.ParseHosts([]string{"a.test", "*.b.test:8080"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		address             string
		list, web, loopback bool // what allows it
	}{
		{"https://a.test/x", true, true, false},
		{"wss://a.test/", true, true, false},
		{"http://x.b.test:8080/", true, true, false},
		{"http://x.b.test/", false, true, false},
		{"http://c.test/", false, true, false},
		{"http://u:p@a.test/", false, false, false},
		{"http://localhost:3000/", false, false, true},
		{"http://LOCALHOST.:3000/", false, false, true},
		{"http://x.localhost/", false, false, true},
		{"http://127.9.9.9/", false, false, true},
		{"http://[::1]:1/", false, false, true},
		{"http://[::ffff:127.0.0.1]/", false, false, true},
		{"http://localhost.evil.test/", false, true, false},
		{"data:text/html,hi", true, true, true},
		{"file:a b.html", true, true, true},
		{"file:sub/../a.html?x#y", true, true, true},
		{"file:///work/a.html", true, true, true},
		{"file:///work", true, true, true},
		{"file:///works/a.html", false, false, false},
		{"file:///work/../etc/passwd", false, false, false},
		{"file:///work/%2e%2e/etc/passwd", false, false, false},
		{`file:///work/..\..\etc/passwd`, false, false, false},
		{"file:///work/..%5c..%5cetc/passwd", false, false, false},
		{"file:///work/..%2f..%2fetc/passwd", false, false, false},
		{"file:///work/a%00b", false, false, false},
		{"file:////etc/passwd", false, false, false},
		{"file:///work/\n../etc/passwd", false, false, false},
		{"file:../etc/passwd", false, false, false},
		{"file:%2e%2e/etc/passwd", false, false, false},
		{"file://a.test/work/a.html", false, false, false},
		{"file:", true, true, true},
		{"chrome://version", false, false, false},
		{"blob:https://a.test/1", false, false, false},
		{"about:blank", false, false, false},
		{"javascript:alert(1)", false, false, false},
		{"view-source:https://a.test/", false, false, false},
		{"a.test", false, false, false},
		{"http://", false, false, false},
		{"http:a.test", false, false, false},
		{"%zz", false, false, false},
		{"", false, false, false},
	} {
		if got := chromium.Allows(hosts, false, false, "/work", tt.address); got != tt.list {
			t.Errorf("%s by the list: %v", tt.address, got)
		}
		if got := chromium.Allows(devices.Hosts{}, true, false, "/work", tt.address); got != tt.web {
			t.Errorf("%s by the web: %v", tt.address, got)
		}
		if got := chromium.Allows(devices.Hosts{}, false, true, "/work", tt.address); got != tt.loopback {
			t.Errorf("%s by loopback: %v", tt.address, got)
		}
	}
}

// No file outside of the folder is allowed, however it is written.
func FuzzReach(f *testing.F) {
	f.Add("file:///work/../etc/passwd")
	f.Add("file:a/%2e%2e/%2E./b")
	f.Add("FILE:////work//a")
	f.Fuzz(func(t *testing.T, address string) {
		if !chromium.Allows(devices.Hosts{}, false, false, "/work", address) {
			return
		}
		if strings.HasPrefix(strings.ToLower(address), "data:") {
			return
		}
		u, err := url.Parse(chromium.Resolve("/work", address))
		if err != nil || u.Scheme != "file" || u.Host != "" || strings.Contains(u.Path, `\`) {
			t.Fatalf("%q is allowed: %v, %v", address, u, err)
		}
		depth := 0
		for i, part := range strings.Split(strings.TrimLeft(u.Path, "/"), "/") {
			switch part {
			case "", ".":
			case "..":
				depth = max(depth-1, 0)
			default:
				if depth == 0 && part != "work" {
					t.Fatalf("%q is allowed: part %d of %s", address, i, u.Path)
				}
				depth++
			}
		}
		if depth < 1 {
			t.Fatalf("%q is allowed: %s", address, u.Path)
		}
	})
}

// A message without an end is not read for ever, and those with one are, in
// whatever pieces they come.
func TestBounded(t *testing.T) {
	fine := strings.Repeat("12345678\x00", 1000)
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(fine), "bytes": iotest.OneByteReader(strings.NewReader(fine)), "halves": iotest.HalfReader(strings.NewReader(fine)),
	} {
		if got, err := io.ReadAll(chromium.Bounded(r, 10)); err != nil || string(got) != fine {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	got, err := io.ReadAll(chromium.Bounded(iotest.OneByteReader(strings.NewReader("1\x00"+strings.Repeat("x", 100))), 10))
	if err == nil || len(got) != 12 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
