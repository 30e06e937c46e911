package connectors

import "strings"

// Reload is the next step where a connector that has stopped is to be tried again, although no setting
// changes: with kill -HUP, claybot reads the configuration and tries those that have stopped.
const Reload = "reload claybot with kill -HUP, or restart it"

// Again returns the next step where a connector needs another value of a setting, by its name: a key
// of the configuration, which claybot applies, or a variable, which it reads when it starts.
func Again(name string) string {
	if strings.Contains(name, ".") {
		return "set " + name + " anew with claybot config set, which applies it"
	}
	return "set " + name + " and start again"
}
