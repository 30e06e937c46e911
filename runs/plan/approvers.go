package plan

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// electorate are the people who approve the steps of an agent.
func (e *engine) electorate(a claybot.Agent, p Policy) tools.Approvers {
	return tools.Approvers{Need: p.Approvals, Named: p.Approvers, Owner: a.Descriptor.OwnerID(), People: e.People}
}
