package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/platforms"
)

// MoreArguments is the line between the argument that an approval shows by itself, see
// Spec.Whole, and the others.
const MoreArguments = "with"

// action writes what is asked, and the action with all its arguments.
func (d *display) action(spec Spec, args json.RawMessage) error {
	var whole string
	rest := make(map[string]json.RawMessage)
	if spec.Whole == "" || json.Unmarshal(args, &rest) != nil || rest[spec.Whole] == nil || json.Unmarshal(rest[spec.Whole], &whole) != nil {
		d.text("**Approve this action: " + spec.Name + "**\n```\n")
		return d.arguments(args)
	}
	d.text("**Run this command?**\n```\n" + plainly(whole) + "\n```")
	if delete(rest, spec.Whole); len(rest) == 0 {
		return nil
	}
	others, err := json.Marshal(rest)
	if err == nil {
		others, err = canonical(others)
	}
	if err != nil {
		return fmt.Errorf("the arguments cannot be shown: %w", err)
	}
	d.text("\n" + MoreArguments + "\n```\n")
	return d.arguments(others)
}

func (d *display) arguments(args json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if err := d.value(dec, 0); err != nil {
		return err
	}
	d.text("\n```")
	return nil
}

// circumstances write what a call means, who asks for it, where it runs, and why it is
// asked about, each in a sentence.
func (d *display) circumstances(agent claybot.Agent, place string, spec Spec, args json.RawMessage, g Grounds) {
	if spec.SubjectIn != nil {
		about, _ := subject(spec, args)
		d.text("\nIt is about " + span(cmp.Or(about, "what is unknown now")) + ".")
	}
	d.text("\n" + asker(agent, g.Person) + ".")
	if where := whereRun(place, spec); where != "" {
		d.text("\nIt runs " + where + ".")
	}
	if g.Why != "" {
		d.text("\nWhy: " + strings.ReplaceAll(oneLine(plainly(g.Why)), "`", "'") + ".")
	}
	if g.Says != "" {
		d.text("\nThe agent says: " + span(g.Says))
	}
}

// asker says which agent asks, for whom, and in which conversation.
func asker(agent claybot.Agent, person string) string {
	d := agent.Descriptor
	owner := cmp.Or(d.OwnerID(), "the operators")
	if person != "" {
		person = span(person)
		owner = person + " (" + owner + ")"
	}
	name := ""
	if d.Name != "" {
		name = " " + span(d.Name)
	}
	switch d.Type {
	case claybot.AgentSubagent:
		return "Asked by the subagent" + name + ", which works for " + owner
	case claybot.AgentCron:
		return "Asked by the task" + name + " of " + owner
	case claybot.AgentHeartbeat:
		return "Asked by the heartbeat"
	}
	if place, shared := claybot.SharedPlace(d.OwnerID()); shared {
		return "Asked by the agent that all members of " + place + " share, for " + cmp.Or(person, "the group")
	}
	if d.Connector == "" || d.ChannelID == "" || platforms.Instances(nil).Direct(d.Connector, d.ChannelID, d.UserID) {
		return "Asked by the agent of " + owner
	}
	return "Asked by the agent of " + owner + " in " + d.Connector + "/" + d.ChannelID
}

// whereRun says where a call runs, if that matters: outside of the workspace, or in it, for
// tools that act there.
func whereRun(place string, spec Spec) string {
	if spec.Source != "" {
		return "on " + span(spec.Source) + ", outside of the workspace"
	}
	acts := slices.ContainsFunc(spec.Scopes, func(s string) bool { return s == "shell" || s == "files" || s == "browser" })
	if place == "" || !acts {
		return ""
	}
	parts := strings.Split(place, ", ")
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, "settings ") || strings.HasPrefix(p, "agent/") })
	return "in the workspace (" + span(strings.Join(parts, ", ")) + ")"
}

// span is a text on one line, as code: nothing in it is a mark of the text around it.
func span(s string) string {
	return "`" + strings.ReplaceAll(oneLine(plainly(s)), "`", "'") + "`"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
