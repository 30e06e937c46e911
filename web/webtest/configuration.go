package webtest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// A Configuration is a configuration of a few keys in memory.
type Configuration struct {
	mu      sync.Mutex
	keys    []web.ConfigKey
	changes []web.ConfigChange
}

// NewConfiguration returns one with a key of each kind. 13 is no value of any of them.
func NewConfiguration() *Configuration {
	return &Configuration{keys: []web.ConfigKey{
		{Key: "log_level", Value: "info", Origin: "default", Kind: "word", Words: []string{"debug", "info", "warn"}, Help: "how much is logged"},
		{Key: "metrics", Value: "true", Origin: "default", Kind: "truth", Words: []string{"true", "false"}, Help: "whether claybot collects metrics"},
		{Key: "telegram.token", Value: "(secret)", Origin: "TELEGRAM_BOT_TOKEN", Kind: "secret", Help: "`env:NAME` or `file:path`"},
		{Key: "agents.default.max_steps", Value: "64", Origin: "claybot.yaml:3", Kind: "number", Limits: "1..1000", Help: "model calls in one run"},
		{Key: "agents.sales.match", Value: "[telegram]", Origin: "claybot.yaml:5", Kind: "list"},
		{Key: "operators", Origin: "default", Kind: "list", Help: "<script>window.hacked = 1</script>", Default: "none"},
	}}
}

// Rewrite changes the file as another person would.
func (c *Configuration) Rewrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, web.ConfigChange{N: len(c.changes) + 1, At: time.Now(), By: "another", Key: "operators"})
}

func (c *Configuration) version() string { return strconv.Itoa(len(c.changes)) }

// Configuration implements web.Configuration.
func (c *Configuration) Configuration(context.Context) (web.ConfigView, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := []web.ConfigKind{
		{Name: "telegram", Group: "connectors", Main: 1, Fields: []web.ConfigKey{
			{Key: "token", Kind: "secret", Help: "`env:NAME` or `file:path`"}, {Key: "delivery", Kind: "word", Words: []string{"stream", "direct"}, Default: "`stream`"},
		}},
		{Name: "mcp", Group: "mcp", Main: 1, Fields: []web.ConfigKey{{Key: "url", Kind: "text", Help: "<script>window.hacked = 1</script>"}, {Key: "trusted", Kind: "truth", Words: []string{"true", "false"}}}},
		{Name: "profile", Group: "agents", Main: 1, Fields: []web.ConfigKey{{Key: "match", Kind: "list"}, {Key: "max_steps", Kind: "number", Limits: "1..1000", Help: "model calls in one run"}}},
		{Name: "relay", Group: "relay", List: true, Main: 2, Fields: []web.ConfigKey{{Key: "name", Kind: "text"}, {Key: "file", Kind: "text"}}},
	}
	return web.ConfigView{File: "claybot.yaml", Version: c.version(), Keys: append([]web.ConfigKey(nil), c.keys...), Kinds: kinds}, nil
}

// ChangeConfig implements web.Configuration.
func (c *Configuration) ChangeConfig(_ context.Context, e web.ConfigEdit) (out web.ConfigChanged, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Version != "" && e.Version != c.version() {
		return out, web.ErrConfigStale
	}
	if e.Kind != "" {
		if e.Fields["token"] == "13" {
			return out, &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: "Nothing was added.", Fields: map[string]string{"token": "13 is no reference."}}
		}
		if e.Fields["token"] == "env:OTHER" {
			return out, &web.Problem{Status: http.StatusForbidden, Code: "local", Message: "Only on the machine.", Fields: map[string]string{"token": "Set this on the machine."}}
		}
		if e.Kind == "relay" && e.Fields["file"] == "" {
			return out, &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: "Nothing was added.", Fields: map[string]string{"name": "It wants a file."}}
		}
		value := e.Kind + " " + e.Fields["token"] + e.Fields["url"] + e.Fields["file"]
		e.Key, e.Value = "connectors."+e.Key, &value
		if e.Kind == "relay" {
			e.Key = "relay"
		}
		c.keys = append(c.keys, web.ConfigKey{Key: e.Key, Origin: "default", Kind: "group"})
	}
	for i, k := range c.keys {
		if k.Key != e.Key && !strings.HasPrefix(k.Key, e.Key+".") { // an entry has one key
			continue
		}
		before, after := k.Value, ""
		switch {
		case e.Value != nil && *e.Value == "13":
			return out, &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: "13 is not valid.", Fields: map[string]string{"value": "13 is not valid."}}
		case e.Secret != "":
			after = "file:claybot.secrets/" + e.Key
		case e.Value != nil:
			after = *e.Value
		}
		c.keys[i].Value, c.keys[i].Origin = after, "claybot.yaml:"+strconv.Itoa(i+1)
		if after == "" {
			c.keys[i].Origin = "default"
		}
		change := web.ConfigChange{N: len(c.changes) + 1, At: time.Now(), By: e.By, Key: e.Key, Before: &before, After: &after}
		c.changes = append(c.changes, change)
		return web.ConfigChanged{Version: c.version(), Changes: []web.ConfigChange{change}}, nil
	}
	return out, storage.ErrNotFound
}

// ConfigHistory implements web.Configuration.
func (c *Configuration) ConfigHistory(context.Context) ([]web.ConfigChange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]web.ConfigChange(nil), c.changes...), nil
}

// RevertConfig implements web.Configuration.
func (c *Configuration) RevertConfig(ctx context.Context, n int, by, version string) (web.ConfigChanged, error) {
	all, _ := c.ConfigHistory(ctx) // it never fails
	if n > len(all) {
		return web.ConfigChanged{}, storage.ErrNotFound
	}
	return c.ChangeConfig(ctx, web.ConfigEdit{Key: all[n-1].Key, Value: all[n-1].Before, By: by, Version: version})
}
