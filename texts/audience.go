package texts

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// What can be disclosed: to which readers, and who alone can read it now.
const (
	OfConversation = "%s will be able to read what an agent knows from a conversation that only %s can read now"
	OfNotes        = "%s will be able to read notes that only %s can read now"
)

// DisclosesUnknown says that it cannot be found out what a call discloses.
const DisclosesUnknown = "it cannot be found out now who will be able to read what"

// Discloses says who will be able to read what only others can read now.
func (v Voice) Discloses(what string, source, sink claybot.Audience) string {
	return v.Say(what, v.Readers(sink), v.Readers(source))
}

// ApproveReply asks whether a workflow may send a text to other readers; why says who they are. Of a
// long text it shows the beginning.
func (v Voice) ApproveReply(flow, why, text string, most int) string {
	return v.Say("May the workflow %s send this? %s.", flow, upperFirst(why)) + "\n\n" + connectors.Cut(text, most)
}

// upperFirst is a text that begins a sentence.
func upperFirst(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// Readers names an audience.
func (v Voice) Readers(a claybot.Audience) string {
	switch {
	case a == claybot.Everybody:
		return v.Say("everybody who talks to this bot")
	case a.Place != "":
		return v.Say("everybody in %s", v.Called(a.Place))
	case a.Owner != "":
		return v.Called(a.Owner)
	}
	return v.Say("the operators")
}

// Called names a person or a channel, connector/id, in a text: by their name on the platform, and
// by the id, because names are unverified.
func (v Voice) Called(id string) string {
	name := ""
	if v.Name != nil {
		name = connectors.Code(v.Name(id), 60)
	}
	if id = connectors.Literal(id, 300); name == "" {
		return id
	}
	return name + " (" + id + ")"
}

// Known names a person in a text from which no reader decides anything: by their name on the platform
// alone, by the id where they have none. See Called for what a reader decides from: a stranger can
// choose the name of another person.
func (v Voice) Known(id string) string {
	if v.Name != nil {
		if name := connectors.Code(v.Name(id), 60); name != "" {
			return name
		}
	}
	return connectors.Literal(id, 300)
}

// CanRead says what an agent can read of its person; has reports whether it has a tool, and
// alone whether only the person reads the conversation.
func (v Voice) CanRead(has func(tool string) bool, alone bool) []string {
	all := []string{v.Say("this conversation, with the files that are sent in it")}
	add := func(tool, direct, group string) {
		if text := map[bool]string{true: direct, false: group}[alone]; has(tool) && text != "" {
			all = append(all, v.In(text))
		}
	}
	add("memory_read", "my own notes, and your notes, which your agents in all your direct chats share", "my own notes from here")
	add("read_file", "the files of my workspace", "the files of my workspace, which only agents in this group share")
	add("cron_list", "your scheduled tasks", "your scheduled tasks that answer here")
	add("list_reminders", "reminders of this conversation", "reminders of this conversation")
	add("read_agent_history", "your conversations with your other agents", "")
	add("memory_read", "notes that are for everybody who talks to this bot", "notes that are for everybody who talks to this bot")
	return all
}

// AsksToRead says what an agent reads or passes on only after its person approved it; see
// CanRead.
func (v Voice) AsksToRead(has func(tool string) bool, alone bool) []string {
	all := []string{}
	if !alone && has("memory_read") {
		all = append(all, v.Say("your notes"))
	}
	if !alone && has("read_agent_history") {
		all = append(all, v.Say("your other conversations"))
	}
	if has("send_agent_message") || has("ask_agent") || has("spawn_and_wait") {
		all = append(all, v.Say("passing on what I know from here to people who do not read this conversation"))
	}
	return all
}

// Privacy answers /privacy.
func (v Voice) Privacy(readers string, alone bool, reads, asks, approved []string) string {
	if alone {
		readers = v.Say("only you")
	}
	text := v.Say("**Who reads this conversation:** %s.", readers)
	for _, part := range []struct {
		title string
		items []string
	}{
		{"What I can read here", reads}, {"What I need your approval for", asks}, {"What you approved permanently", quoted(approved)},
	} {
		if len(part.items) > 0 {
			text += "\n\n**" + v.In(part.title) + ":**\n- " + strings.Join(part.items, "\n- ")
		}
	}
	return text
}

func quoted(rules []string) []string {
	all := make([]string, len(rules))
	for i, rule := range rules {
		all[i] = connectors.Code(rule, 200)
	}
	return all
}
