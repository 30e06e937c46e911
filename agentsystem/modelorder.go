package agentsystem

import (
	"context"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/texts"
)

// A modelOrder is what /model changes.
type modelOrder struct {
	Name   string              `json:"name,omitempty"` // empty: the model of the profile
	Choice claybot.ModelChoice `json:"choice"`
}

// modelOrder returns what /model changes in the conversation of an agent, and the answer to it;
// nil where it changes nothing.
func (o *orders) modelOrder(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (*order, string) {
	v, word, operator := texts.Of(ctx), strings.TrimSpace(m.Text), byOperator(o.people, agent, m)
	models := o.profiles.ModelsOf(agent, operator)
	if word == "" {
		return nil, v.ModelNow(models.Now, models.Names)
	}
	if models.Names == nil {
		return nil, v.In(texts.ModelOperators)
	}
	name, ok := models.Named(word)
	byDefault := !ok && strings.EqualFold(word, people.ByDefault)
	if !ok && !byDefault {
		return nil, v.NoModel(word, models.Names)
	}
	c := claybot.ModelChoice{Message: m.ID, By: author(agent, m), At: m.At, Listed: !operator}
	if byDefault || name == models.Default {
		name, c.Listed = "", false
	}
	return &order{Model: &modelOrder{name, c}}, v.ModelChosen(name, models.Default, byDefault)
}

// author returns the person who wrote a message, as "connector/userId".
func author(agent claybot.Agent, m claybot.AgentMessage) string {
	if d := agent.Descriptor; m.From.UserID != "" && d.Connector != "" {
		return d.Connector + "/" + m.From.UserID
	}
	return agent.Descriptor.OwnerID()
}

// byOperator reports whether an operator wrote a message, and not a program that may not change
// settings.
func byOperator(who *people.Directory, agent claybot.Agent, m claybot.AgentMessage) bool {
	return !m.From.Program && !m.From.NoRules && who.IsOperator(author(agent, m))
}
