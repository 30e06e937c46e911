package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// What a change over the network is told to run instead works as it stands.
func TestOnMachineCommands(t *testing.T) {
	for key, want := range map[string]string{
		"access.mode open": "claybot config set access.mode open",
		"data_dir":         "claybot config set data_dir VALUE",
	} {
		no, ok := errors.AsType[*web.Problem](onMachine(key, "no"))
		if !ok || !strings.HasSuffix(no.Fix, ": "+want) {
			t.Errorf("%s: %+v", key, no)
		}
	}
	if got := nodes.Fix(nodes.Key{Kind: nodes.Profile, Name: "a b"}); got != "start it: claybot nodes start 'profile/a b'" {
		t.Errorf("a name with a blank: %s", got)
	}
}
