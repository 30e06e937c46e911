package texts

import (
	"fmt"
	"strings"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// What /pair and /allow answer.
const (
	OperatorsAlone = "Please send me that in a direct message."
	NoPairings     = "There is no pending request."
	NoSuchCode     = "No pending request has this code. Codes are valid for one hour; /pair lists the pending requests."
	CodesLocked    = "Too many codes were wrong. Please try again in some minutes."
	AllowWhat      = "Name a person or a channel by a stable id, such as /allow telegram:123456 or /allow slack:U012ABC."
)

// PairingList answers /pair with the pending requests.
func (v Voice) PairingList(open []storage.Pairing) string {
	if len(open) == 0 {
		return v.Say(NoPairings)
	}
	lines := []string{v.Say("Pending requests:") + "\n"}
	for _, p := range open {
		lines = append(lines, "- "+v.Say("%s, until %s: /pair %s", subject(p.Connector, p.UserID, p.Name), v.Moment(p.Expires), p.Code))
	}
	return strings.Join(lines, "\n")
}

// HasAccess says that a person or a channel has access from now on. The name is unverified.
func (v Voice) HasAccess(connector, id, name string) string {
	return v.Say("%s now has access.", subject(connector, id, name))
}

// NotAllowed refuses /allow.
func (v Voice) NotAllowed(err error) string {
	return v.Say("I can't allow that: %s.", strings.TrimSuffix(err.Error(), "."))
}

// subject names a person or a channel; name is what a stranger chose.
func subject(connector, id, name string) string {
	id = connectors.Literal(connector+":"+id, 200)
	if name = connectors.Code(name, 60); name == "" {
		return id
	}
	return fmt.Sprintf("%s (%s)", id, name)
}
