package texts

import (
	"github.com/claybot/claybot/connectors"
)

// Why a connector has stopped: the end of a sentence.
const (
	StoppedToken      = "its token is refused"
	StoppedNoToken    = "its token is missing or not valid"
	StoppedSocketMode = "Socket Mode is switched off for its app"
	StoppedRemoved    = "its app was removed from the workspace"
)

// ConnectorStopped tells an operator that a connector has stopped; why is one of the reasons
// above, or empty. The log and the doctor have the error itself.
func (v Voice) ConnectorStopped(name, why string) string {
	name = connectors.Capital(name)
	if why == "" {
		return v.Say("%s has stopped, so nothing is received or sent there. `claybot doctor` says why, and what to do.", name)
	}
	return v.Say("%s has stopped, so nothing is received or sent there: %s. `claybot doctor` says what to do.", name, v.In(why))
}

// ConnectorWorks tells an operator that a connector which had stopped works again.
func (v Voice) ConnectorWorks(name string) string {
	return v.Say("%s works again.", connectors.Capital(name))
}
