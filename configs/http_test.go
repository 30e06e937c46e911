package configs

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestHTTPGroup(t *testing.T) {
	c, warnings := load(t, `
http:
  addr: 0.0.0.0:8443
  tls_cert: tls/cert.pem
  tls_key: /etc/key.pem
  trusted_proxies: [10.0.0.5, "fd00::1", 10.1.2.3/16, "::ffff:192.0.2.7", 10.1.0.0/16]
  insecure: true
`, nil)
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	g := c.HTTP.Guard
	if c.HTTP.Addr != "0.0.0.0:8443" || g.TLSCert != filepath.Join(filepath.Dir(c.Source.File), "tls/cert.pem") || g.TLSKey != "/etc/key.pem" || !g.Insecure {
		t.Errorf("http = %q, %+v", c.HTTP.Addr, g)
	}
	if got := fmt.Sprint(g.Proxies); got != "[10.0.0.5/32 fd00::1/128 10.1.0.0/16 192.0.2.7/32]" {
		t.Errorf("proxies %s", got)
	}
}

// A mistake never opens anything.
var brokenHTTP = []fault{
	{"bad address in the group", "http:\n  addr: nonsense\n", []string{`2 http.addr: "nonsense" is not an address ?`}},
	{"unknown key", "http:\n  tlscert: x\n", []string{"2 http.tlscert: unknown key ?http.tls_cert"}},
	{"a list", "http: [127.0.0.1:1]\n", []string{"1 http: want a group of keys (addr, tls_cert, tls_key, trusted_proxies, insecure, public_url), found a list ?"}},
	{"insecure", "http:\n  insecure: perhaps\n", []string{`2 http.insecure: "perhaps" is not one of true, false ?`}},
	{"everybody is a proxy", "http:\n  trusted_proxies: [0.0.0.0/0, \"::/0\"]\n", []string{
		`2 http.trusted_proxies: "0.0.0.0/0" means everybody ?`, `2 http.trusted_proxies: "::/0" means everybody ?`,
	}},
	{"proxies by name", "http:\n  trusted_proxies:\n    - proxy.lan\n    - 10.0.0.0/33\n    - \"::ffff:10.0.0.0/104\"\n", []string{
		`3 http.trusted_proxies: "proxy.lan" is not an address ?`, `4 http.trusted_proxies: "10.0.0.0/33" is not an address ?`,
		`5 http.trusted_proxies: "::ffff:10.0.0.0/104" is not an address ?`,
	}},
}

func TestBrokenHTTPOpensNothing(t *testing.T) {
	for _, tt := range brokenHTTP {
		if c, _ := load(t, tt.file, nil); c.HTTP.Addr != DefaultHTTP && c.HTTP.Addr != Off || c.HTTP.Guard.Insecure || len(c.HTTP.Guard.Proxies) > 0 {
			t.Errorf("%s: %q %+v", tt.name, c.HTTP.Addr, c.HTTP.Guard)
		}
	}
}

// A proxy that the environment names is the only way in, also where the file, that of the image
// for example, allows a page without one; the environment alone allows both.
func TestProxiesCloseWhatTheFileOpens(t *testing.T) {
	const file = "http:\n  addr: 0.0.0.0:8420\n  insecure: true\n"
	for name, tt := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"no proxy":       {nil, true},
		"an empty one":   {map[string]string{"CLAYBOT_HTTP_PROXIES": " "}, true},
		"a proxy":        {map[string]string{"CLAYBOT_HTTP_PROXIES": "10.0.0.5"}, false},
		"a bad one":      {map[string]string{"CLAYBOT_HTTP_PROXIES": "proxy.lan"}, false},
		"a proxy or not": {map[string]string{"CLAYBOT_HTTP_PROXIES": "10.0.0.5", "CLAYBOT_HTTP_INSECURE": "1"}, true},
	} {
		if c, _ := load(t, file, tt.env); c.HTTP.Guard.Insecure != tt.want {
			t.Errorf("%s: insecure %t, want %t", name, c.HTTP.Guard.Insecure, tt.want)
		}
	}
}
