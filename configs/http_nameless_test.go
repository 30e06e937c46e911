package configs

import (
	"maps"
	"testing"
)

// A proxy needs a name by which people come, unless there is no page.
func TestNamelessProxy(t *testing.T) {
	proxy := map[string]string{"CLAYBOT_HTTP_PROXIES": "10.0.0.5"}
	with := func(name, value string) map[string]string {
		m := maps.Clone(proxy)
		m[name] = value
		return m
	}
	for name, tt := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"no proxy":         {nil, false},
		"a proxy":          {proxy, true},
		"a proxy, named":   {with("CLAYBOT_HTTP_HOSTS", "chat.example.org"), false},
		"a bad name alone": {with("CLAYBOT_HTTP_HOSTS", "https://"), true},
		"no page":          {with("CLAYBOT_HTTP_ADDR", "off"), false},
	} {
		c, _ := load(t, "", tt.env)
		if got := c.NamelessProxy(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
