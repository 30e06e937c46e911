package overview

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A Privacy says who reads the conversation of an agent, and what of its person the agent
// can read there.
type Privacy struct {
	Readers  string   `json:"readers" doc:"Who reads the conversation: a person, or everybody in a group or channel."`
	Reads    []string `json:"reads" doc:"What the agent can read."`
	Asks     []string `json:"asks" doc:"What it can read or pass on only after its person approved it."`
	Approved []string `json:"approved" doc:"What the person approved permanently, as rules."`
}

// Privacy returns who reads the conversation of an agent, and what it can read there;
// storage.ErrNotFound.
func (o *Answers) Privacy(ctx context.Context, id claybot.AgentID) (Privacy, error) {
	e, err := o.Index.IndexedAgentByID(ctx, id)
	if err != nil {
		return Privacy{}, fmt.Errorf("read agent %s: %w", id, err)
	}
	return o.privacyOf(ctx, e)
}

func (o *Answers) privacyOf(ctx context.Context, e storage.IndexEntry) (Privacy, error) {
	settings, err := o.Profiles.Settings(ctx, e.ID)
	if err != nil {
		return Privacy{}, fmt.Errorf("read the settings of %s: %w", e.ID, err)
	}
	readers := o.Subagents.AudienceOf(ctx, e)
	v, alone := texts.Of(ctx), readers.Place == ""
	has := func(tool string) bool { return slices.Contains(settings.Now.Tools, tool) }
	return Privacy{
		Readers: v.Readers(readers), Reads: v.CanRead(has, alone), Asks: v.AsksToRead(has, alone),
		Approved: append([]string{}, settings.Own.Approved...),
	}, nil
}
