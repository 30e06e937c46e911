package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
)

// The examples have no fault, name tools that there are, and go the ways of their test cases, also when
// they are cut off at every record.
func TestExampleFlows(t *testing.T) {
	const dir = "../../examples"
	text, err := os.ReadFile(filepath.Join(dir, "claybot.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	conf, warnings, err := configs.LoadText(filepath.Join(dir, "claybot.yaml"), text, func(name string) (string, bool) {
		return "whsec_bm90LWEtcmVhbC1zZWNyZXQ=", name == "ALERTS_SECRET"
	})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	folder := flowsDir(&conf)
	files, err := readFlows(folder)
	if err != nil {
		t.Fatal(err)
	}
	all, faults := checkFlows(folder, files, offlineWorld(&conf))
	if len(all) < 5 || len(faults) > 0 {
		t.Fatal(len(all), faults)
	}
	for name, f := range all {
		for _, n := range f.Nodes {
			var used []string
			if spec, ok := n.Spec.(*flows.Tool); ok {
				used = []string{spec.Tool}
			} else if a := n.Agent(); a != nil {
				used = a.Tools
			}
			for _, tool := range used {
				if !reserved(tool) {
					t.Errorf("%s: there is no tool %s", name, tool)
				}
			}
		}
		results, cuts, err := flowTestCmd{Crash: true}.play(folder, name, &conf)
		if err != nil || len(results) < 1 || cuts < 4 {
			t.Errorf("%s: %d cases, %d cuts, %v", name, len(results), cuts, err)
		}
		for _, r := range results {
			if len(r.wrong) > 0 {
				t.Errorf("%s: %s: %q", name, r.name, r.wrong)
			}
		}
	}
}
