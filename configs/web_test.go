package configs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/claybot/claybot/egress"
)

const noFetch = "; nothing is fetched until that is right ?"

var brokenWeb = []fault{
	{"web as word", "web: on\n", []string{"1 web: want a group of keys (fetch, unlisted, private, fetches_per_minute, search), found a single value; ignored ?"}},
	{"fetch", "web: {fetch: of}\n", []string{`1 web.fetch: "of" is not one of public, off` + noFetch + "off"}},
	{"fetch as list", "web:\n  fetch: [example.org]\n", []string{"2 web.fetch: want public, off, or a group with the key allow, found a list" + noFetch}},
	{"fetch mistyped", "web:\n  fetch: {allowed: [a.test]}\n", []string{"2 web.fetch.allowed: unknown key" + noFetch + "web.fetch.allow"}},
	{"allow as group", "web:\n  fetch:\n    allow: {a: b}\n", []string{"3 web.fetch.allow: want a list, found a group of keys" + noFetch}},
	{"allow", "web:\n  fetch:\n    allow: [\"https://a.test/\", \"*.com\", 127.1, \"a.test:0\", \"\"]\n", []string{
		`3 web.fetch.allow: "https://a.test/" is not a host such as`, `3 web.fetch.allow: "*.com" stands for too much`, `3 web.fetch.allow: "127.1" is not a host`, `3 web.fetch.allow: "a.test:0" is not a host`, `3 web.fetch.allow: "" is not a host`,
	}},
	{"private", "web:\n  private: [a.test, 10.0.0.1, \"8.8.8.8:80\", \"169.254.169.254:80\", \"0.0.0.0:80\", \"[fe80::1]:80\", \"10.1:80\", \"*.a.test:80\", \"100.100.100.200:80\", \"[fd20:ce::254]:80\", \"168.63.129.16:80\"]\n", []string{
		`2 web.private: "a.test" is not a host with its port`, `2 web.private: "10.0.0.1" is not a host`, `2 web.private: "8.8.8.8:80" is not an address of a private network`, `2 web.private: "169.254.169.254:80" is not an address`,
		`2 web.private: "0.0.0.0:80" is not an address`, `2 web.private: "[fe80::1]:80" is not an address`, `2 web.private: "10.1:80" is not`, `2 web.private: "*.a.test:80" is not`, `2 web.private: "100.100.100.200:80" is not an address`, `2 web.private: "[fd20:ce::254]:80" is not an address`, `2 web.private: "168.63.129.16:80" is not an address`,
	}},
	{"rate", "web: {fetches_per_minute: 0}\n", []string{`1 web.fetches_per_minute: "0" is not a whole number from 1 to 1000; ignored ?`}},
	{"search as group", "web:\n  search: {provider: brave}\n", []string{"2 web.search: want a list of search engines, found a group of keys; ignored ?"}},
	{"search of words", "web:\n  search: [brave]\n", []string{"2 web.search[0]: want a group of keys (provider, key, base_url), found a single value; the search engine is left out ?"}},
	{"search without", "web:\n  search:\n    - {base_url: \"http://a.test\"}\n    - {provider: searxng}\n    - {provider: brave}\n", []string{
		"3 web.search[0]: has no provider; the search engine is left out ?", "4 web.search[1]: has no base_url", "5 web.search[2]: has no key, which brave wants; the search engine is left out ?",
	}},
	{"search", "web:\n  search:\n    - {provider: altavista}\n    - {provider: brave, key: " + canary + "}\n    - {provider: searxng, base_url: a.test}\n    - {provider: tavily, key: env:NOT_SET}\n", []string{
		`3 web.search[0].provider: "altavista" is not one of brave, tavily, searxng; the search engine is left out ?`, "4 web.search[1].key: a secret must not stand in the file",
		"5 web.search[2].base_url: \"a.test\" has no scheme", `6 web.search[3].key: the environment variable "NOT_SET" is not set; the search engine is left out ?`,
	}},
}

func TestWeb(t *testing.T) {
	for file, want := range map[string]Web{
		"":                           {},
		"web: {fetch: public}\n":     {},
		"web: {fetch: off}\n":        {NoFetch: true},
		"web: {fetch: false}\n":      {NoFetch: true},
		"web: {fetch: nonsense}\n":   {NoFetch: true},
		"web: {fetch: {other: 1}}\n": {NoFetch: true, Allow: []string{}},
		"web: {fetch: {}}\n":         {Allow: []string{}},
		"web: {fetch: {allow: [A.test, \"*.b.test\", \"c.test:8443\", a.test, 10.0.0.1]}}\n": {Allow: []string{"a.test", "*.b.test", "c.test:8443"}},
		"web: {fetch: {allow: []}}\n":              {Allow: []string{}},
		"web: {private: \"Wiki.internal:8080\"}\n": {Private: []string{"wiki.internal:8080"}},
		"web: {private: [\"10.0.0.5:80\", \"[::1]:81\", \"localhost:3000\", \"[::ffff:10.0.0.5]:80\"]}\n": {Private: []string{"10.0.0.5:80", "[::1]:81", "localhost:3000"}},
		"web: {fetches_per_minute: 5}\n": {PerMinute: 5},
	} {
		if c, _ := load(t, file, nil); !reflect.DeepEqual(c.Tools.Web, want) {
			t.Errorf("%s: got %+v, want %+v", file, c.Tools.Web, want)
		}
	}
	c, warnings := load(t, "web:\n  search:\n    - {provider: brave, key: env:BRAVE}\n    - {provider: searxng, base_url: \"http://10.0.0.5:8080/\"}\n", map[string]string{"BRAVE": "not-a-real-key"})
	want := []SearchEngine{{Provider: SearchBrave, Key: NewSecret("env:BRAVE", "not-a-real-key")}, {Provider: SearchSearXNG, BaseURL: "http://10.0.0.5:8080"}}
	if !reflect.DeepEqual(c.Tools.Web.Search, want) || len(warnings) != 0 {
		t.Errorf("%+v, %v", c.Tools.Web.Search, warnings)
	}
	if (Web{}).FetchPerMinute() != DefaultPerMinute || (Web{PerMinute: 3}).FetchPerMinute() != 3 {
		t.Error("the rate")
	}
}

// What is taken from the file is what the way out takes.
func FuzzWebHosts(f *testing.F) {
	for _, text := range []string{"a.test", "*.a.test", "a.test:80", "127.1", "0x7f", "a.0x", "xn--a", "10.0.0.1:80", "[::1]:80", "a..b", "-a.test", "*.1.2", "xn--bcher-kva.test:443", "a-.b:1", "_x.test", "a.test.", "00--0", "xn--bcher-kva.test", "[::ffff:1.2.3.4]:5", strings.Repeat("a.", 126) + "b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if entry, err := webHost(text); err == nil {
			if _, err := egress.New(egress.Policy{Allow: []string{entry}}); err != nil {
				t.Error(err)
			}
		}
		if pair, err := privatePair(text); err == nil {
			if _, err := egress.New(egress.Policy{Private: []string{pair}}); err != nil {
				t.Error(err)
			}
		}
	})
}
