package configs_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/claybot/claybot/configs"
)

func TestReadFrontmatter(t *testing.T) {
	f, err := configs.ReadFrontmatter("---\r\nuid: abc\nname: \"Morning: report\"\ngate: {command: ./x.sh, timeout: 60s}\nempty:\n---\n\nThe prompt.\n---\nmore\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []configs.Field{{"uid", "abc", 2}, {"name", "Morning: report", 3}, {"gate.command", "./x.sh", 4}, {"gate.timeout", "60s", 4}, {"empty", "", 5}}
	if !slices.Equal(f.Fields, want) || f.Body != "The prompt.\n---\nmore" {
		t.Errorf("%+v", f)
	}
	again, err := configs.ReadFrontmatter(f.String())
	if err != nil || again.Body != f.Body || len(again.Fields) != len(f.Fields) {
		t.Errorf("%v: %q became %+v", err, f.String(), again)
	}
}

func TestFrontmatterMistakes(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		line       int
	}{
		{"none", "hello", -1},
		{"empty", "", -1},
		{"unclosed", "---\na: b\n", 1},
		{"no yaml", "---\na: b\n c: [\n---\n", 3},
		{"list", "---\n- a\n---\n", 2},
		{"twice", "---\na: b\na: c\n---\n", 3},
		{"too deep", "---\na: {b: {c: d}}\n---\n", 2},
		{"list as value", "---\nok: 1\na: [b]\n---\n", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := configs.ReadFrontmatter(tt.text)
			var at *configs.LineError
			switch {
			case tt.line < 0 && errors.Is(err, configs.ErrNoFrontmatter):
			case errors.As(err, &at) && at.Line == tt.line:
			default:
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{"---\na: b\n---\nbody", "---\na: {b: c}\n---\n", "---\n---\n", "---\n? [a]\n: b\n---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := configs.ReadFrontmatter(text)
		if err != nil {
			return
		}
		again, err := configs.ReadFrontmatter(m.String())
		if err != nil {
			t.Fatalf("%q: %v", m.String(), err)
		}
		for _, x := range m.Fields {
			if y, ok := again.Get(x.Key); !ok || y.Value != x.Value {
				t.Errorf("%q: %q became %q", x.Key, x.Value, y.Value)
			}
		}
	})
}
