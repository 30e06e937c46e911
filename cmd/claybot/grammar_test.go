package main

import (
	"strings"
	"testing"
)

// TestServeGrammar compares the grammar of serve with that of all commands, which is used
// when a flag comes first.
func TestServeGrammar(t *testing.T) {
	for _, last := range []string{"--help", "--bogus", "surplus", "--http="} {
		var own, all strings.Builder
		code := run([]string{"serve", "--log=text", last}, strings.NewReader(""), &own, &own)
		if want := run([]string{"--log=text", "serve", last}, strings.NewReader(""), &all, &all); code != want || own.String() != all.String() {
			t.Errorf("serve %s: %d, %d otherwise\n%s\n%s", last, code, want, &own, &all)
		}
	}
}
