package configs_test

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

func TestNotes(t *testing.T) {
	tests := []struct {
		yaml     string
		want     configs.Notes
		warnings int
	}{
		{"", configs.Notes{}, 0},
		{"notes: off", configs.Notes{Off: true}, 0},
		{"notes: maybe", configs.Notes{Off: true}, 1},
		{"global_notes: write", configs.Notes{Global: true}, 0},
		{"global_notes: wriet", configs.Notes{}, 1}, // the narrow one
		{"skills: []", configs.Notes{Skills: []string{}}, 0},
		{"skills: [a, b, a]", configs.Notes{Skills: []string{"a", "b"}}, 0},
		{"skills: 'a, b'", configs.Notes{Skills: []string{}}, 1},
		{"skills: [a, Office_Mail]", configs.Notes{Skills: []string{}}, 1},
		{"skills: {a: b}", configs.Notes{Skills: []string{}}, 1}, // none
	}
	for _, test := range tests {
		c, warnings := loadText(t, "agents:\n  default:\n    memory: on\n    "+test.yaml+"\n", nil)
		got := c.Agents.Profiles[configs.DefaultProfile].Notes
		if got.Off != test.want.Off || got.Global != test.want.Global || (got.Skills == nil) != (test.want.Skills == nil) ||
			strings.Join(got.Skills, " ") != strings.Join(test.want.Skills, " ") || len(warnings) != test.warnings {
			t.Errorf("%s: %+v, %v", test.yaml, got, warnings)
		}
	}
}
