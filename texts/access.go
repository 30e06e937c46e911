package texts

import (
	"fmt"
	"strings"

	"github.com/claybot/claybot"
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

// What /pair role answers.
const (
	OwnersAlone     = "Only an owner changes roles, or `claybot people role` on the machine of this bot."
	RoleHelp        = "/pair role: give a person the role owner, operator or user"
	RoleNotOnPage   = "No role is changed on the page. Write this to the bot in a chat app, as an owner, or use `claybot people role` on the machine of this bot."
	RoleWhat        = "Name a person by a stable id, and their role: owner, operator or user. For example: /pair role telegram:123456 operator."
	RoleOfLastOwner = "They are the last owner. Make another person an owner first."
	RoleConfigured  = "I can't take that role: the configuration names them in operators."
	RoleOfConsole   = "The page and the terminal always belong to an owner."
	RoleNoAccess    = "They have no access. Give it first, for example with /allow."
	RoleNoPerson    = "This is not the id of a person."
	RoleOfChannel   = "This may be the id of a channel: no person with this id has written to me. Ask them to write to me first."
)

// HasRole says which role a person has from now on.
func (v Voice) HasRole(connector, id string, role storage.Role) string {
	who := subject(connector, id, "")
	switch role {
	case storage.RoleOwner:
		return v.Say("%s is an owner now.", who)
	case storage.RoleOperator:
		return v.Say("%s is an operator now.", who)
	}
	return v.Say("%s is a user now, without other rights.", who)
}

// A button below a notice of a request for access, and the notice that there are more requests.
const (
	IgnoreButton = "Ignore"
	AccessMore   = "More people ask for access. To keep this short, I name none of them within this hour: /pair lists all pending requests."
)

// AccessAsked tells an operator that an unknown user asks for access. The name is what that user
// chose; nothing of what they wrote is in it.
func (v Voice) AccessAsked(p storage.Pairing) string {
	return v.Say("%[1]s asks for access. The name is unverified. The request has the code **%[2]s** and is open until %[3]s. Approve it with a button below, or write /pair approve %[2]s, /pair deny %[2]s or /pair ignore %[2]s.",
		subject(p.Connector, p.UserID, p.Name), p.Code, v.Moment(p.Expires))
}

// AccessDenied says that an operator denied a request.
func (v Voice) AccessDenied(connector, id, name string) string {
	return v.Say("I denied the request of %s. They get no message about it.", subject(connector, id, name))
}

// AccessIgnored says that an operator ignores a person.
func (v Voice) AccessIgnored(connector, id, name string) string {
	return v.Say("I denied the request of %s, and name no more of theirs for a month. They get no message about it.", subject(connector, id, name))
}

// RequestApproved, RequestDenied and RequestClosed answer a decision about a request that is no
// longer open.
func (v Voice) RequestApproved(connector, id, name string, at claybot.Time) string {
	return v.Say("The request of %s is approved already, since %s.", subject(connector, id, name), v.Moment(at))
}

// RequestDenied: see RequestApproved.
func (v Voice) RequestDenied(connector, id, name string, at claybot.Time) string {
	return v.Say("The request of %s is denied already, since %s.", subject(connector, id, name), v.Moment(at))
}

// RequestClosed: see RequestApproved.
func (v Voice) RequestClosed(connector, id, name string) string {
	return v.Say("The request of %s is no longer open. If they write again, they get a new code.", subject(connector, id, name))
}

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
