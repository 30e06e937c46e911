package configs

import (
	_ "embed" // helpText
	"fmt"
	"strings"
	"sync"
)

// helpText has the rows of docs/configuration.md about keys, and those of docs/mcp.md about MCP servers; a test keeps
// them the same.
//
//go:embed help.tsv
var helpText string

// A Help is what docs/configuration.md says of a key, as plain text.
type Help struct {
	Values  string // what the key is for, and the values that it takes
	Default string // what holds without it
}

// helpByName has the rows of helpText. A list has the keys of its entries, if it has no row of its own.
var helpByName = sync.OnceValue(func() map[string]Help {
	all, lists := make(map[string]Help), make(map[string]string)
	for line := range strings.Lines(helpText) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 3 {
			continue
		}
		all[cells[0]] = Help{cells[1], cells[2]}
		if list, key, of := strings.Cut(cells[0], "[]."); of {
			lists[list] += fmt.Sprintf("; `%s`: %s", key, cells[1])
		}
	}
	for list, keys := range lists {
		if _, own := all[list]; !own {
			all[list] = Help{"a list, whose entries have these keys" + keys, "none"}
		}
	}
	return all
})

// HelpOf returns the help of a key of the file, also of a profile or a connector with a name
// of its own; nothing for a group, or a key that does not exist.
func HelpOf(key string) Help {
	for _, path := range pathsOf(key) {
		for _, name := range helpNames(path) {
			if h, ok := helpByName()[name]; ok {
				return h
			}
		}
	}
	return Help{}
}

// helpNames are the names that the guide may have for the key with a path.
func helpNames(path string) []string {
	var all []string
	switch own, of := strings.CutPrefix(path, profilePath+"."); {
	case of && strings.HasPrefix(own, "model."):
		all = append(all, own)
	case of && strings.HasPrefix(own, "workspace."):
		all = append(all, "workspaces."+strings.TrimPrefix(own, "workspace."))
	case of:
		all = append(all, "agents.<profile>."+own)
	}
	if own, of := strings.CutPrefix(path, "connectors.webhook."); of {
		all = append(all, "connectors.<name>."+own)
	}
	return append(all, path)
}
