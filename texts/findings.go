package texts

import (
	"strings"

	"github.com/claybot/claybot/connectors"
)

// Kinds of parts that have findings: how sentences about them begin.
const (
	PartConnector     = "%s"
	PartModel         = "The model %s"
	PartMCP           = "The MCP server %s"
	PartRelay         = "The relay %s"
	PartCheck         = "The check “%s”"
	PartWorkspace     = "The workspace provider %s"
	PartZone          = "The time zone %s"
	PartMember        = "The process on %s"
	PartDisk          = "The disk on %s"
	PartConfiguration = "The configuration"
)

// Longest parts of findings in a chat, in characters.
const (
	causeMost = 400
	nextMost  = 300
)

// A Part is what a finding is about.
type Part struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
}

// part begins a sentence about a part.
func (v Voice) part(p Part) string {
	if p.Name == "" {
		return v.In(p.Kind)
	}
	name := connectors.Literal(p.Name, 80)
	if p.Kind == PartConnector {
		name = connectors.Capital(name)
	}
	return v.Say(p.Kind, name)
}

// FindingTold tells an operator what is wrong with a part: what that means, the cause and the next
// step. The cause and the step are what the doctor says of it, in its words.
func (v Voice) FindingTold(p Part, means, cause, next string) string {
	lines := []string{v.Say("%s needs your attention: %s.", v.part(p), v.In(means)), connectors.Literal(cause, causeMost)}
	if next != "" {
		lines = append(lines, v.Say("Next step: %s", connectors.Literal(next, nextMost)))
	}
	return strings.Join(lines, "\n")
}

// MoreFindings says how many findings /status leaves out.
const MoreFindings = "claybot status shows %d more"

// FindingLine shows an operator one finding of a list, with its code.
func (v Voice) FindingLine(what, cause, next, code string) string {
	lines := []string{connectors.Literal(what+": "+cause, causeMost) + " " + connectors.Literal("["+code+"]", causeMost)}
	if next != "" {
		lines = append(lines, v.Say("Next step: %s", connectors.Literal(next, nextMost)))
	}
	return strings.Join(lines, "\n  ")
}

// FindingOver tells an operator that a part works again.
func (v Voice) FindingOver(p Part) string {
	if p.Kind == PartDisk {
		return v.Say("%s has room again.", v.part(p))
	}
	return v.Say("%s works again.", v.part(p))
}
