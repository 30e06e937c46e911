package main

import (
	_ "embed"
	"fmt"
	"strings"
)

// thirdParty has the licences of Go and of all modules in this binary; a test of cmd/release writes it.
//
//go:embed THIRD_PARTY_LICENSES
var thirdParty string

// licensesCmd prints the licences of what claybot is linked with.
type licensesCmd struct {
	Module string `arg:"" optional:"" help:"Only those of this module, such as golang.org/x/net, or of Go."`
	Names  bool   `help:"Only the names and versions."`
}

// Run prints the licences.
func (c licensesCmd) Run(e *env) error {
	intro, rest, _ := strings.Cut(thirdParty, licenceRule)
	var out strings.Builder
	if c.Module == "" && !c.Names {
		out.WriteString(intro)
	}
	last := ""
	for text := range strings.SplitSeq(rest, licenceRule) {
		heading, _, _ := strings.Cut(text, "\n")
		name := heading[:strings.LastIndex(heading, ", ")]
		module, _, _ := strings.Cut(name, " ")
		switch {
		case c.Module != "" && !strings.EqualFold(module, c.Module):
		case c.Names:
			if name != last {
				out.WriteString(name + "\n")
			}
			last = name
		default:
			out.WriteString(licenceRule + text)
		}
	}
	if out.Len() == 0 {
		return fmt.Errorf("claybot is not linked with %q; `claybot licenses --names` lists what it is linked with", c.Module)
	}
	_, err := e.out.Write([]byte(out.String()))
	return err
}

// licenceRule stands before each licence.
var licenceRule = "\n" + strings.Repeat("=", 80) + "\n"
