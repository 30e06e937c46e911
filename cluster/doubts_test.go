package cluster_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/storage"
)

func TestDoubts(t *testing.T) {
	// Times are in seconds.
	node := func(id, name string, started, seen, lease int64) storage.Member {
		return storage.Member{
			ID: id, Name: name, Started: claybot.Time(started * 1000), Seen: claybot.Time(seen * 1000),
			Until: claybot.Time((seen + lease) * 1000), State: storage.MemberLive,
		}
	}
	state := func(n storage.Member, s storage.MemberState) storage.Member { n.State = s; return n }
	skewed := func(n storage.Member, ms int64) storage.Member { n.Skew = ms; return n }
	tests := []struct {
		name string
		all  []storage.Member
		want map[string]string // a part of the sentence, by id
	}{
		{"none", nil, nil},
		{"one", []storage.Member{node("1", "a", 1, 100, 10)}, nil},
		{"alike", []storage.Member{node("1", "a", 1, 100, 10), node("2", "b", 2, 101, 10)}, nil},
		{"another lease", []storage.Member{node("1", "a", 1, 100, 10), node("2", "b", 2, 101, 5), node("3", "c", 3, 100, 10)}, map[string]string{"2": "its node.lease is 5s, and that of others 10s"}},
		{"most count", []storage.Member{node("1", "a", 1, 100, 5), node("2", "b", 2, 101, 10), node("3", "c", 3, 100, 10)}, map[string]string{"1": "its node.lease is 5s, and that of others 10s"}},
		{"the oldest counts of two", []storage.Member{node("2", "b", 2, 101, 5), node("1", "a", 1, 100, 10)}, map[string]string{"2": "is 5s"}},
		{"one that was lost", []storage.Member{node("1", "a", 1, 100, 10), state(node("2", "a", 2, 99, 5), storage.MemberLost)}, nil},
		{"one that has left", []storage.Member{node("1", "a", 1, 100, 10), {ID: "2", Name: "a", Started: 2000, Seen: 90_000, State: storage.MemberGone}}, nil},
		{"one that drains", []storage.Member{node("1", "a", 1, 100, 10), state(node("2", "b", 2, 99, 5), storage.MemberDraining)}, map[string]string{"2": "is 5s"}},
		{"one name", []storage.Member{node("1", "a", 1, 100, 10), node("2", "a", 2, 101, 10)}, map[string]string{"1": "another member is called a", "2": "another member is called a"}},
		{"both", []storage.Member{node("1", "a", 1, 100, 10), node("2", "a", 2, 101, 5)}, map[string]string{"1": "is called a", "2": "own. And its node.lease is 5s"}},
		{"one that was killed and begun anew", []storage.Member{node("1", "a", 1, 97, 10), node("2", "a", 98, 100, 10)}, nil},
		{"the same, with a clock that is behind", []storage.Member{node("1", "a", 1, 97, 10), skewed(node("2", "a", 38, 100, 10), -60_000)}, nil},
		{"one name, with a clock that is ahead", []storage.Member{node("1", "a", 1, 97, 10), skewed(node("2", "a", 120, 100, 10), 60_000)}, map[string]string{"1": "called a", "2": "called a"}},
		{"a process that joined again", []storage.Member{node("1", "a", 1, 97, 10), node("2", "a", 1, 100, 10)}, nil},
	}
	for _, tt := range tests {
		got := cluster.Doubts(tt.all)
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(tt.want))) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		for id, want := range tt.want {
			if !strings.Contains(got[id], want) {
				t.Errorf("%s: %q, want %q", tt.name, got[id], want)
			}
		}
	}
}

// Another node that is not set up as this one is told to the log, once, whichever of
// them came first.
func TestDoubtsAreLogged(t *testing.T) {
	tests := []struct {
		name  string
		other storage.Member
		ttl   time.Duration
		want  string
	}{
		{"another lease", storage.Member{Name: "b"}, 5 * time.Second, "different node.lease"},
		{"one name", storage.Member{Name: "a"}, ttl, "same node.name"},
		{"alike", storage.Member{Name: "b"}, ttl, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *register) {
				member := func(self storage.Member, ttl time.Duration) (*strings.Builder, func()) {
					log, b := logged(slog.LevelWarn)
					m := cluster.New(cluster.Config{Store: r, Claims: r, TTL: ttl, Log: log, Self: self})
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error)
					go func() { done <- m.Run(ctx) }()
					return b, func() {
						cancel()
						if err := <-done; err != nil {
							t.Error(err)
						}
					}
				}
				first, stop := member(storage.Member{Name: "a"}, ttl)
				time.Sleep(20 * time.Second)
				second, stopSecond := member(tt.other, tt.ttl)
				time.Sleep(time.Minute)
				stop()
				stopSecond()
				for who, b := range map[string]*strings.Builder{"the first": first, "the second": second} {
					if tt.want == "" && b.Len() > 0 || tt.want != "" && (strings.Count(b.String(), "\n") != 1 || !strings.Contains(b.String(), tt.want)) {
						t.Errorf("%s was told, want %q once:\n%s", who, tt.want, b)
					}
				}
			})
		})
	}
}
