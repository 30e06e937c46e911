package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/platforms"
)

// MoreArguments is the line between the argument that an approval shows by itself, see
// Spec.Whole, and the others.
const MoreArguments = "with"

// command is the argument of Spec.Whole that needs no other words than that it runs.
const command = "command"

// action writes what is asked, and the action with all its arguments. doing is what it does in the
// words of people, empty for the name of the tool; only with words are the arguments lines.
func (d *display) action(spec Spec, args json.RawMessage, doing string) error {
	var whole string
	rest := make(map[string]json.RawMessage)
	if spec.Whole == "" || json.Unmarshal(args, &rest) != nil || rest[spec.Whole] == nil || json.Unmarshal(rest[spec.Whole], &whole) != nil {
		d.text("**" + d.say.say("Approve this action: %s", cmp.Or(doing, spec.Name)) + "**")
		return d.arguments(args, doing != "")
	}
	title := d.say.say("Run this command?")
	if spec.Whole != command {
		title = d.say.say("Approve this action: %s", cmp.Or(doing, spec.Name))
	}
	d.text("**" + title + "**\n```\n" + plainly(whole) + "\n```")
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
	d.text("\n" + d.say.say(MoreArguments))
	return d.arguments(others, doing != "")
}

// arguments writes a block of arguments: lines where that is asked for and they can be, else JSON.
func (d *display) arguments(args json.RawMessage, lines bool) error {
	if fields, ok := fieldsOf(args); lines && ok {
		d.text("\n```\n")
		err := d.lines(fields)
		d.text("\n```")
		return err
	}
	if lines && string(args) == "{}" {
		return nil
	}
	d.text("\n```\n")
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
		if about, _ := subject(spec, args); about != "" {
			d.text("\n" + d.say.say("It is about %s.", span(about)))
		} else {
			d.text("\n" + d.say.say("What it is about is unknown now."))
		}
	}
	if asker := d.asker(agent, g); asker != "" {
		d.text("\n" + asker)
	}
	if where := d.whereRun(place, spec); where != "" {
		d.text("\n" + where)
	}
	if g.Why != "" {
		d.text("\n" + d.say.say("Why: %s.", strings.ReplaceAll(oneLine(plainly(g.Why)), "`", "'")))
	}
	if g.Says != "" {
		d.text("\n" + d.say.say("The agent says: %s", span(g.Says)))
	}
}

// maxID is the longest id that is shown; one of a webhook comes from what it was sent.
const maxID = 300

// asker says which agent asks, for whom, and in which conversation; nothing to its own person in
// their direct chat.
func (d *display) asker(agent claybot.Agent, g Grounds) string {
	of, called := agent.Descriptor, g.Called
	if called == nil {
		called = func(id string) string { return connectors.Literal(id, maxID) }
	}
	person, owner := g.Person, d.say.say("the operators")
	switch id := of.OwnerID(); {
	case person != "":
		person = span(person)
		owner = person + " (" + cmp.Or(connectors.Literal(id, maxID), owner) + ")"
	case id != "":
		owner = called(id)
	}
	switch {
	case of.Type == claybot.AgentSubagent && of.Name == "":
		return d.say.say("Asked by the subagent, which works for %s.", owner)
	case of.Type == claybot.AgentSubagent:
		return d.say.say("Asked by the subagent %s, which works for %s.", span(of.Name), owner)
	case of.Type == claybot.AgentCron && of.Name == "":
		return d.say.say("Asked by the task of %s.", owner)
	case of.Type == claybot.AgentCron:
		return d.say.say("Asked by the task %s of %s.", span(of.Name), owner)
	case of.Type == claybot.AgentHeartbeat:
		return d.say.say("Asked by the heartbeat.")
	}
	if place, shared := claybot.SharedPlace(of.OwnerID()); shared {
		return d.say.say("Asked by the agent that all members of %s share, for %s.", called(place), cmp.Or(person, d.say.say("the group")))
	}
	if of.Connector == "" || of.ChannelID == "" || platforms.Instances(nil).Direct(of.Connector, of.ChannelID, of.UserID) {
		if g.Own && of.OwnerID() != "" {
			return ""
		}
		return d.say.say("Asked by the agent of %s.", owner)
	}
	return d.say.say("Asked by the agent of %s in %s.", owner, called(of.Connector+"/"+of.ChannelID))
}

// whereRun says where a call runs, if that matters: outside of the workspace, or in it, for
// tools that act there.
func (d *display) whereRun(place string, spec Spec) string {
	if spec.Source != "" {
		return d.say.say("It runs on %s, outside of the workspace.", span(spec.Source))
	}
	acts := slices.ContainsFunc(spec.Scopes, func(s string) bool { return s == "shell" || s == "files" || s == "browser" })
	if place == "" || !acts {
		return ""
	}
	parts := strings.Split(place, ", ")
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, "settings ") || strings.HasPrefix(p, "agent/") })
	return d.say.say("It runs in the workspace (%s).", span(strings.Join(parts, ", ")))
}

// span is a text on one line, as code: nothing in it is a mark of the text around it.
func span(s string) string {
	return "`" + strings.ReplaceAll(oneLine(plainly(s)), "`", "'") + "`"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
