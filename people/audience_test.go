package people

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/platforms"
)

// Who can read a conversation, by the ids of the platforms.
func TestAudienceOf(t *testing.T) {
	gate := NewGate(nil, nil, nil, MovesOf([]string{`{"connector":"slack","from":"T1/C7","to":"T1/C9"}`}))
	for _, tt := range []struct {
		d    claybot.Descriptor
		r    claybot.Route
		want claybot.Audience
	}{
		{claybot.User("telegram", "7", "7"), claybot.Route{}, claybot.Audience{Owner: "telegram/7"}},
		{claybot.User("telegram", "-100", "7"), claybot.Route{}, claybot.Audience{Owner: "telegram/7", Place: "telegram/-100"}},
		{claybot.User("telegram", "8", "7"), claybot.Route{}, claybot.Audience{Owner: "telegram/7", Place: "telegram/8"}},
		{claybot.User("slack", "T1/D1", "U1"), claybot.Route{}, claybot.Audience{Owner: "slack/U1"}},
		{claybot.User("slack", "T1/C1", "U1"), claybot.Route{}, claybot.Audience{Owner: "slack/U1", Place: "slack/T1/C1"}},
		{claybot.User("slack", "T1/G1", "U1"), claybot.Route{}, claybot.Audience{Owner: "slack/U1", Place: "slack/T1/G1"}},
		// Instances have the ids of their platform, and those that are gone are known by them.
		{claybot.User("work", "T1/D1", "U1"), claybot.Route{}, claybot.Audience{Owner: "work/U1"}},
		{claybot.User("work", "T1/C1", "U1"), claybot.Route{}, claybot.Audience{Owner: "work/U1", Place: "work/T1/C1"}},
		{claybot.User("sales", "7", "7"), claybot.Route{}, claybot.Audience{Owner: "sales/7"}},
		{claybot.User("sales", "-100", "7"), claybot.Route{}, claybot.Audience{Owner: "sales/7", Place: "sales/-100"}},
		{claybot.User("ci", "4711", "ci"), claybot.Route{}, claybot.Audience{Owner: "ci/ci", Place: "ci/4711"}},
		{claybot.User("gone", "T1/C1", "U1"), claybot.Route{}, claybot.Audience{Owner: "gone/U1", Place: "gone/T1/C1"}},
		{claybot.User("gone", "T1/D1", "U1"), claybot.Route{}, claybot.Audience{Owner: "gone/U1"}},
		{claybot.User("gone", "-100", "7"), claybot.Route{}, claybot.Audience{Owner: "gone/7", Place: "gone/-100"}},
		{claybot.User("slack", "T1/C1", claybot.Everyone), claybot.Route{}, claybot.Audience{Owner: "slack/T1/C1/*", Place: "slack/T1/C1"}},
		{claybot.User("web", "main", "operator"), claybot.Route{}, claybot.Audience{Owner: "web/operator"}},
		{claybot.User("api", "thread", "token"), claybot.Route{}, claybot.Audience{Owner: "api/token"}},
		// A task is read where it answers; a foreground agent always in its own chat.
		{claybot.Descriptor{Type: claybot.AgentCron, Owner: "telegram/7"}, claybot.Route{}, claybot.Audience{Owner: "telegram/7"}},
		{claybot.Descriptor{Type: claybot.AgentCron, Owner: "telegram/7"}, claybot.Route{Connector: "telegram", ChannelID: "-100"}, claybot.Audience{Owner: "telegram/7", Place: "telegram/-100"}},
		{claybot.Descriptor{Type: claybot.AgentCron}, claybot.Route{Connector: "slack", ChannelID: "T1/C1"}, claybot.Audience{Place: "slack/T1/C1"}},
		{claybot.Descriptor{Type: claybot.AgentCron}, claybot.Route{Connector: "slack", ChannelID: "T1/C7"}, claybot.Audience{Place: "slack/T1/C9"}}, // its id of today
		{claybot.User("telegram", "7", "7"), claybot.Route{Connector: "telegram", ChannelID: "-100"}, claybot.Audience{Owner: "telegram/7"}},
		{claybot.Descriptor{Type: claybot.AgentHeartbeat}, claybot.Route{}, claybot.Audience{}},
	} {
		if got := New(Config{Gate: gate, Instances: func() platforms.Instances {
			return platforms.Instances{"work": "slack", "sales": "telegram", "ci": "webhook"}
		}}).AudienceOf(tt.d, tt.r); got != tt.want {
			t.Errorf("%+v, %+v: %+v, want %+v", tt.d, tt.r, got, tt.want)
		}
	}
}

// Every audience beside every other one: ann and annie are one person.
func TestDiscloses(t *testing.T) {
	dir := New(Config{Identities: func(owner string) []string {
		if owner == "chat/ann" || owner == "chat/annie" {
			return []string{"chat/ann", "chat/annie"}
		}
		return nil
	}, Instances: func() platforms.Instances { return platforms.Instances{"ci": platforms.Webhook} }})
	audiences := map[string]claybot.Audience{
		"operators": {}, "all": claybot.Everybody, "ann": {Owner: "chat/ann"}, "annie": {Owner: "chat/annie"}, "bob": {Owner: "chat/bob"},
		"ann in g": {Owner: "chat/ann", Place: "chat/g"}, "bob in g": {Owner: "chat/bob", Place: "chat/g"}, "ann in h": {Owner: "chat/ann", Place: "chat/h"},
		"task in g": {Place: "chat/g"}, "hook": {Owner: "ci/ci", Place: "ci/a"}, "notes of the hook": {Owner: "ci/ci"}, "hook in b": {Owner: "ci/ci", Place: "ci/b"},
		"all in g": {Owner: "chat/g/*", Place: "chat/g"}, "notes of g": {Owner: "chat/g/*"}, "all in h": {Owner: "chat/h/*", Place: "chat/h"},
	}
	// What may be read there without asking, beside what operators and all may read.
	inG := []string{"ann in g", "bob in g", "task in g", "all in g", "notes of g"}
	free := map[string][]string{
		"operators": {}, "all": {},
		"ann":      {"ann", "annie", "ann in g", "ann in h"},
		"annie":    {"ann", "annie", "ann in g", "ann in h"},
		"bob":      {"bob", "bob in g"},
		"ann in g": inG, "bob in g": inG, "task in g": inG, "all in g": inG, "notes of g": inG,
		"ann in h": {"ann in h", "all in h"}, "all in h": {"ann in h", "all in h"},
		"hook": {"hook", "notes of the hook", "hook in b"},
	}
	for sink, may := range free {
		ok := map[string]bool{"operators": true, "all": true}
		for _, source := range may {
			ok[source] = true
		}
		for source, a := range audiences {
			if got := dir.Discloses(a, audiences[sink]); got == ok[source] {
				t.Errorf("from %s to %s: discloses %v", source, sink, got)
			}
		}
	}
}
