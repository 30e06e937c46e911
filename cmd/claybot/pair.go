package main

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"rsc.io/qr"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type pairCmd struct {
	List    pairListCmd    `cmd:"" default:"1" eg:"pair" help:"List pending requests, and the users and groups with access."`
	Approve pairApproveCmd `cmd:"" eg:"pair approve CODE" help:"Approve the pending request with CODE."`
	Deny    pairDenyCmd    `cmd:"" eg:"pair deny CODE" help:"Deny the pending request with CODE."`
	Link    pairLinkCmd    `cmd:"" eg:"pair link" help:"Print a link, and its QR code, or a code to send, that gives one person access to a bot."`
	Allow   pairAllowCmd   `cmd:"" eg:"pair allow telegram:123456789" help:"Allow a user or group by ID, such as telegram:123 or slack:U1."`
	Revoke  pairRevokeCmd  `cmd:"" eg:"pair revoke slack:U012ABCDEF" help:"Revoke the access of a user or group."`
}

type (
	pairListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	pairApproveCmd struct {
		Code string `arg:"" help:"Pairing code of the user."`
	}
	pairDenyCmd struct {
		Code string `arg:"" help:"Pairing code of the user."`
	}
	pairLinkCmd struct {
		Connector string `arg:"" default:"telegram" help:"Name of the bot's connector."`
		JSON      bool   `name:"json" help:"Print JSON."`
	}
	pairAllowCmd struct {
		Who string `arg:"" help:"User or group as connector:id, with its stable ID."`
	}
	pairRevokeCmd struct {
		Who string `arg:"" help:"User or group as connector:id, as listed by pair list."`
	}
)

// Run lists requests and grants.
func (c pairListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/pairing"), func(p web.PairingList) error {
		rows := each(p.Pairings, func(x web.PairingView) []string {
			return []string{x.Connector + ":" + x.UserID, x.Name, "pending; approve with: claybot pair approve " + x.Code}
		})
		rows = append(rows, each(p.Grants, func(x storage.Grant) []string {
			return []string{x.Connector + ":" + x.Subject, x.Name, "approved " + moment(x.At.Time())}
		})...)
		return e.list("WHO,NAME (unverified),STATE", "No pending requests, and no approved users or groups.\n", rows)
	})
}

// Run approves a code.
func (c pairApproveCmd) Run(e *env) error {
	return reply(e, "POST", to("/pairing"), web.Decision{Code: c.Code, Approve: new(true)}, func(p storage.Pairing) string {
		return fmt.Sprintf("%s:%s now has access.\n", p.Connector, p.UserID)
	})
}

// Run denies a code.
func (c pairDenyCmd) Run(e *env) error {
	return e.does("POST", to("/pairing"), web.Decision{Code: c.Code, Approve: new(false)}, "Request denied.\n")
}

// Run prints a pairing link, on a terminal with its QR code.
func (c pairLinkCmd) Run(e *env) error {
	out, err := ask[web.Decided](e, "POST", to("/pairing"), web.Decision{Invite: c.Connector})
	switch {
	case err != nil:
		return err
	case c.JSON:
		return e.printJSON(out.Invitation)
	}
	text := invitationText(*out.Invitation)
	if isTerminal(e.out) && out.Invitation.URL != "" {
		text += "\n" + picture(out.Invitation.URL)
	}
	return e.text(text)
}

// pairingText says what a pairing link is for.
func pairingText(url string, expires claybot.Time) string {
	return fmt.Sprintf("Open this link in Telegram and press Start. It gives one person access, once, within %s:\n\n%s\n", left(expires), url)
}

// invitationText says what a pairing link or code is for.
func invitationText(i web.Invitation) string {
	if i.URL != "" {
		return pairingText(i.URL, i.Expires)
	}
	return fmt.Sprintf("Send this code to the bot in a direct message. It gives one person access, once, within %s:\n\n%s\n", left(i.Expires), i.Code)
}

// left is the time until an invitation expires.
func left(expires claybot.Time) string {
	return count(max(int(math.Ceil(time.Until(expires.Time()).Minutes())), 1), "minute")
}

// picture is a QR code for a dark or light terminal: two rows of it are one line, and a margin
// belongs to it.
func picture(text string) string {
	const margin = 2
	code, err := qr.Encode(text, qr.L)
	if err != nil { // too long: the link stands above
		return ""
	}
	var b strings.Builder
	for y := -margin; y < code.Size+margin; y += 2 {
		b.WriteString("\x1b[30;47m")
		for x := -margin; x < code.Size+margin; x++ {
			b.WriteString([]string{" ", "▀", "▄", "█"}[bit(code.Black(x, y))+2*bit(code.Black(x, y+1))])
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}

func bit(set bool) int {
	if set {
		return 1
	}
	return 0
}

// Run grants access to a user or group by ID.
func (c pairAllowCmd) Run(e *env) error {
	connector, id, err := who(c.Who)
	if err != nil {
		return err
	}
	return e.does("POST", to("/pairing"), web.Decision{Connector: connector, Subject: id}, fmt.Sprintf("%s:%s now has access.\n", connector, id))
}

// Run revokes a grant.
func (c pairRevokeCmd) Run(e *env) error {
	connector, id, err := who(c.Who)
	if err != nil {
		return err
	}
	err = reply(e, "DELETE", to("/pairing").with(url.Values{"connector": {connector}, "subject": {id}}), nil, func(out web.Revoked) string {
		switch {
		case out.Role:
			return fmt.Sprintf("The role of %s:%s is taken. Access remains: %s.\n", connector, id, out.Still)
		case out.Still != "":
			return fmt.Sprintf("Revoked the pairing of %s:%s, but %s.\n", connector, id, out.Still)
		}
		return fmt.Sprintf("%s:%s no longer has access.\n", connector, id)
	})
	if err != nil {
		return err
	}
	return linkedRoles(e, connector+":"+id, func(others []overview.Identity) bool {
		return slices.ContainsFunc(others, func(x overview.Identity) bool { return x.Role != storage.RoleUser })
	})
}

// who splits connector:id.
func who(s string) (connector, id string, err error) {
	connector, id, ok := strings.Cut(s, ":")
	if !ok || connector == "" || id == "" || strings.HasPrefix(id, "@") {
		return "", "", usageError{fmt.Errorf("invalid user %.80q: want connector:id with a stable ID, such as telegram:123456", s)}
	}
	return connector, id, nil
}
