package texts

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

func TestLimits(t *testing.T) {
	if got := (Voice{}).Limits(claybot.Permissions{Web: new(true)}); len(got) > 0 {
		t.Errorf("no limits are %q", got)
	}
	got := strings.Join(Voice{}.Limits(claybot.Permissions{
		Web: new(false), WorkingDir: "src", ReadDirs: []string{"docs", "src\n- web: yes"}, WriteDirs: []string{}, Routes: []string{},
		Tools: claybot.ToolPermissions{Allow: []string{"wait"}, Deny: []string{"shell"}},
	}), "\n")
	want := `web: no
working directory: src
can read only: docs, src - web: yes
can write only: nothing
can write to its own chat, its subagents and: nothing
allowed tools: wait
denied tools: shell`
	if got != want {
		t.Errorf("the limits are\n%s\nwant\n%s", got, want)
	}
}
