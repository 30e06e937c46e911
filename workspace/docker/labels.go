package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/docker/docker/api/types/filters"

	"github.com/claybot/claybot/workspace"
)

const (
	labelRole     = "role"
	labelKey      = "key"
	labelAgent    = "agent"
	labelNode     = "node"
	labelSpec     = "spec"
	labelPlatform = "platform"
	labelImage    = "image" // the id that the name of the image had
	labelParent   = "parent"
	labelVolume   = "volume"
)

const (
	roleWorkspace = "workspace"
	roleSidecar   = "sidecar"
	roleHelper    = "helper" // never runs; see own
	roleData      = "data"
	roleShared    = "shared"
	roleNetwork   = "network"
)

func (p *Provider) label(name string) string {
	if strings.HasSuffix(p.cfg.Prefix, "/") || strings.HasSuffix(p.cfg.Prefix, ".") {
		return p.cfg.Prefix + name
	}
	return p.cfg.Prefix + "." + name
}

// labels are those of all that is made for a key; an empty key is the
// installation itself.
func (p *Provider) labels(role string, key workspace.Key) map[string]string {
	l := map[string]string{p.label(labelRole): role, p.label(labelNode): p.cfg.Node}
	if key != "" {
		l[p.label(labelKey)] = string(key)
	}
	if agent := agentOf(key); agent != "" {
		l[p.label(labelAgent)] = agent
	}
	return l
}

func agentOf(key workspace.Key) string {
	kind, rest, _ := strings.Cut(string(key), "/")
	switch kind {
	case "agent", "browser":
		return rest
	case "thread":
		agent, _, _ := strings.Cut(rest, "/")
		return agent
	}
	return ""
}

func (p *Provider) filter(role string, key workspace.Key) filters.Args {
	f := filters.NewArgs()
	for name, value := range p.labels(role, key) {
		if name != p.label(labelAgent) {
			f.Add("label", name+"="+value)
		}
	}
	return f
}

func (p *Provider) word() string {
	if w := slug(p.cfg.Prefix, 24); w != "" {
		return w
	}
	return "claybot"
}

// slug keeps the letters and digits of a text, at most n, with dashes between.
func slug(text string, n int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if b.Len() >= n {
			break
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

func sum(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:6])
}

func (p *Provider) name(key workspace.Key) string {
	_, rest, _ := strings.Cut(string(key), "/")
	if rest = slug(rest, 24); rest == "" {
		rest = "workspace"
	}
	return p.word() + "-" + rest + "-" + sum(p.cfg.Node, string(key))
}

func (p *Provider) dataVolume(key workspace.Key) string { return p.name(key) + "-data" }

func (p *Provider) sharedVolume(name string) string {
	return p.word() + "-vol-" + sum(p.cfg.Node) + "-" + name
}
