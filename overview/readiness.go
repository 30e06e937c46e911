package overview

import (
	"fmt"
	"strings"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/texts"
)

// Ready reports whether the member is ready, or else what is missing, as Unready does.
func (o *Monitor) Ready() (bool, string) {
	f, _ := o.Unready()
	return f.Code == "", f.Text
}

// Unready returns what keeps the member from being ready, with its code and without a next step, and the connector
// that does, if one does; the zero Finding if
// it is ready. It is when every connector has
// succeeded once and within connectors.LiveWithin, or stands by for a live member, none has
// stopped that works on no other member or has waited long for a message to be stored, or for a
// former one to end, the store answers, this member is
// healthy and parking is not full. Before Run nothing is ready. A single unusable agent does
// not count, nor does a failure that is shorter, nor a connector that came or was replaced within
// that time and has not succeeded yet; Status reports them.
func (o *Monitor) Unready() (f Finding, by *ConnectorStatus) {
	missing := func(what, code, text string) (Finding, *ConnectorStatus) {
		return Finding{What: what, Level: LevelProblem, Code: code, Text: text}, by
	}
	_, full := o.Parked.Totals()
	switch {
	case !o.Connectors.Running(): // no connector is known yet, so none is missing
		return missing("daemon", "daemon-starting", "the start is under way")
	case o.Membership.Answering() != nil:
		return missing("database", "database-unreachable", noDatabase)
	case o.Worker.Health.Spread():
		return missing("unwell", "daemon-unwell", o.Worker.Health.Says())
	case full:
		return missing("parking", "parking-full", texts.ParkingFull)
	}
	for _, c := range o.health() {
		if why := o.lacking(c); why != "" {
			by = &c
			return missing(c.Name, RefusalCode(c.Refusal), "connector "+c.Name+why)
		}
	}
	return Finding{}, nil
}

// RefusalCode is the code of a connector that does not work: what its platform refuses for good, or else, and for nil,
// connector-failing.
func RefusalCode(p *connectors.PermanentError) string {
	if p != nil {
		switch p.Says {
		case texts.StoppedToken, texts.StoppedSocketMode, texts.StoppedRemoved:
			return "credential-refused"
		case texts.StoppedNoToken:
			return "credential-missing"
		case texts.StoppedIntents:
			return "discord-intent-off"
		}
	}
	return "connector-failing"
}

// lacking says why a connector keeps the member from being ready; empty if it does not.
func (o *Monitor) lacking(c ConnectorStatus) string {
	if c.Held != "" {
		return " is " + c.Held
	}
	if stuck := o.Connectors.Stuck(c.Name); stuck != "" {
		return ": " + stuck
	}
	if c.State == connectors.StateOff || c.State == connectors.StateStopped && o.Standby.Elsewhere(c.Name) {
		return ""
	}
	waits := c.State == connectors.StateStarting || c.State != connectors.StateStandby && c.LastOK.IsZero()
	if waits && c.State != connectors.StateStopped && o.Connectors.Fresh(c.Name) {
		return ""
	}
	if waits || c.State == connectors.StateStopped || c.Lapsed() || c.State == connectors.StateStandby && o.Standby.Vacant(c.Name) {
		return strings.TrimSuffix(fmt.Sprintf(": %s: %s", c.Word(), c.Err), ": ")
	}
	return ""
}

// Word is the state in words: that of nodes where they have another one.
func (c ConnectorStatus) Word() string {
	switch c.State {
	case connectors.StateFailing:
		return nodes.Failed
	case connectors.StateStopped:
		return nodes.Off
	case connectors.StateOff:
		return nodes.Stopped
	}
	return c.State
}
