package configs

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Sink is a place outside that is told of every event of every run.
type Sink struct {
	Name string // unique; renaming a sink makes it a new one
	// URL and Secret are those of a webhook.
	URL    string
	Secret Secret
	// File is where events are appended instead, one JSON object on a line.
	File string
}

// setRelay reads the list of sinks and leaves out bad ones, whole.
func setRelay(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of sinks, found %s; ignored", kind(n))
		return
	}
	lines := make(map[string]int)
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		s, ok := r.sink(where, e)
		switch {
		case !ok:
		case lines[s.Name] != 0:
			r.warn(where, "the name %s was given in line %d already; ignored", quote(s.Name), lines[s.Name])
			instead(r, len(r.warnings)-1, "the sink is left out")
		default:
			lines[s.Name] = e.Line
			c.Telemetry.Relay = append(c.Telemetry.Relay, s)
		}
	}
}

// sink reads one entry, and returns false after a warning about it.
func (r *reader) sink(at place, n *yaml.Node) (s Sink, ok bool) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(sinkKeys()), ", "), kind(n))
		instead(r, len(r.warnings)-1, "the sink is left out")
		return s, false
	}
	before := len(r.warnings)
	group(r, at, n, &s, sinkKeys())
	if len(r.warnings) == before {
		switch {
		case s.Name == "":
			r.warn(at, "has no name; ignored")
		case (s.URL == "") == (s.File == ""):
			r.warn(at, "wants either url or file; ignored")
		case s.URL != "" && s.Secret.Value() == "":
			r.warn(at, "has no secret, without which nobody can tell its requests from forged ones; ignored")
		case s.File != "" && s.Secret.Named():
			r.warn(at, "a file needs no secret; ignored")
		default:
			return s, true
		}
	}
	instead(r, before, "the sink is left out")
	return s, false
}

func sinkKeys() []key[Sink] {
	return []key[Sink]{
		text("name", func(r *reader, at place, v string, s *Sink) {
			if len(v) > 64 || !helperName.MatchString(v) {
				r.warn(at, "%s is not a name of at most 64 of a-z, 0-9, _ and -; ignored", quote(v))
				return
			}
			s.Name = v
		}),
		text("url", func(r *reader, at place, v string, s *Sink) {
			u, ok := r.url(at, v)
			store(&s.URL, u, ok)
		}),
		text("secret", func(r *reader, at place, v string, s *Sink) { s.Secret = r.reference(at, v) }),
		text("file", func(r *reader, at place, v string, s *Sink) {
			if v == "" || strings.ContainsAny(v, "\r\n\x00") {
				r.warn(at, "%s is not the name of a file; ignored", quote(v))
				return
			}
			if !filepath.IsAbs(v) {
				v = filepath.Join(r.dir, v)
			}
			s.File = v
		}),
	}
}
