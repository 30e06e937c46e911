package plan

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// electorate are the people who approve the steps of an agent.
func (e *engine) electorate(a claybot.Agent, p Policy) tools.Approvers {
	return tools.Approvers{Need: p.Approvals, Named: p.Approvers, Owner: a.Descriptor.OwnerID(), People: e.People}
}

// approvers are who may still approve a step, each person once; nil for the
// agent's own person. ok is false when too few people are named for as many
// approvals as are needed.
func (e *engine) approvers(a claybot.Agent, p Policy, v *Vote) (who []string, ok bool) {
	who, err := e.electorate(a, p).Left(v.By)
	return who, err == nil
}

// approved is how many people have approved a step and still may: the policy may
// name others by now.
func (e *engine) approved(a claybot.Agent, p Policy, v *Vote) int {
	return e.electorate(a, p).Count(v.By)
}
