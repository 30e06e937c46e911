package postgres

import (
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestToPostgres(t *testing.T) {
	for _, tt := range []struct {
		q, want string
		lists   []int
	}{
		{"SELECT 1", "SELECT 1", nil},
		{"SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2", nil},
		{"SELECT ?1, ?12, ?1 || '?'", "SELECT $1, $12, $1 || '?'", nil},
		{"SELECT a FROM t INDEXED BY t_a WHERE a = ? ORDER BY a LIMIT 0+?", "SELECT a FROM t WHERE a = $1 ORDER BY a LIMIT 0+$2", nil},
		{
			"SELECT a FROM t WHERE x = ? AND a IN (SELECT value FROM json_each(?)) LIMIT 0+?",
			"SELECT a FROM t WHERE x = $1 AND a IN (SELECT value FROM unnest(CAST($2 AS TEXT[])) AS list (value)) LIMIT 0+$3",
			[]int{1},
		},
	} {
		if got := toPostgres(tt.q); got.sql != tt.want || !reflect.DeepEqual(got.lists, tt.lists) {
			t.Errorf("%s:\n got %+v\nwant %s %v", tt.q, got, tt.want, tt.lists)
		}
	}
	got := toPostgres("SELECT 1 WHERE a IN (SELECT value FROM json_each(?)) AND b = ?").parameters([]any{`["x","a\u0000b"]`, "\x00"})
	if want := []any{[]string{"x", "a" + escape + "0b"}, escape + "0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzStorable: what is stored can be stored, and comes back as it was.
func FuzzStorable(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x00b", "\x01", "\x010", "\x00\x01\x00\x011", "ü\xff", "\x01\x01\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		kept := storable(s)
		for _, r := range kept {
			if r == 0 {
				t.Fatalf("%q is kept as %q", s, kept)
			}
		}
		if !utf8.ValidString(kept) {
			t.Fatalf("%q is kept as %q", s, kept)
		}
		if utf8.ValidString(s) && restored(kept) != s {
			t.Fatalf("%q comes back as %q", s, restored(kept))
		}
	})
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Café, über ALLES!": "cafe uber alles", "a/b-c.md": "a b c md", "ﬁ ²": "fi 2", "  x  ": "x", "\xff": "", "日本 語": "日本 語",
	} {
		if got := fold(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		w           backlog
		nodes, want int
	}{
		{backlog{due: 100}, 1, 100},
		{backlog{due: 3}, 3, 3},                                 // few are not divided
		{backlog{due: 90}, 3, 30},                               // a burst
		{backlog{due: 60, mine: 30, held: 30}, 3, 0},            // I have mine
		{backlog{due: 60, late: 60, mine: 30, held: 30}, 3, 60}, // no other node took them
		{backlog{due: 60, mine: 0, held: 30}, 3, 30},
		{backlog{due: 10, mine: 1, held: 300}, 3, 103},
	} {
		if got := tt.w.share(tt.nodes); got != tt.want {
			t.Errorf("%+v of %d nodes: %d, want %d", tt.w, tt.nodes, got, tt.want)
		}
	}
}
