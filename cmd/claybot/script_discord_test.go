package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// discordGuild is the server of the scripts. It has the channels c1 and c2, and t1 is a thread
// of c1; dm1 is the direct chat with user 1.
const discordGuild = "300000000000000001"

// discordID returns the id of a place or a user: dm1, c1, t1, or 1.
func discordID(ts *testscript.TestScript, name string) string {
	for prefix, first := range map[string]string{"dm": "4", "c": "5", "t": "6", "": "2"} {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, prefix)); err == nil && strings.HasPrefix(name, prefix) && n > 0 && n < 100 {
			return fmt.Sprintf("%s000000000000000%02d", first, n)
		}
	}
	ts.Fatalf("%q is no place or user of Discord; there are dm1, c1, t1, and 1", name)
	return ""
}

// fakeDiscord returns a platform with its channels.
func fakeDiscord(ts *testscript.TestScript, cfg discordtest.Config) *discordtest.Server {
	cfg.Heartbeat = time.Second // claybot names in it what is stored
	s := discordtest.New(cfg)
	for _, n := range []string{"1", "2", "3"} {
		s.AddDirect(discordID(ts, "dm"+n), discordID(ts, n))
	}
	s.AddChannel(discordGuild, discordID(ts, "c1"))
	s.AddChannel(discordGuild, discordID(ts, "c2"))
	s.AddThread(discordID(ts, "c1"), discordID(ts, "t1"))
	return s
}

// discordCommand lets people write and reads what they see.
func (r *rig) discordCommand(ts *testscript.TestScript, args []string) {
	args, back := r.about(ts, args)
	defer back()
	if r.discord == nil {
		ts.Fatalf("there is no Discord; use: fakes discord")
	}
	const usage = "usage: discord say|mention|edit|delete|react|unreact|press|choose|submit|fill|slash|whispered|expect|expect-none|shows|leave|join|remove|title|expire|disconnect|forbid|stored|revoke|sessions ..."
	if len(args) == 0 {
		ts.Fatalf(usage)
	}
	id := func(n int) string { return discordID(ts, args[n]) }
	switch {
	case (len(args) == 4 || len(args) == 5) && (args[0] == "say" || args[0] == "mention"): // discord say PLACE USER TEXT [VARIABLE]
		text := args[3]
		if args[0] == "mention" {
			text = "<@" + r.discord.BotID() + "> " + text
		}
		message := r.discord.Write(discordtest.Post{Channel: id(1), User: id(2), Text: text})
		if len(args) == 5 {
			ts.Setenv(args[4], message)
		}
	case len(args) == 4 && args[0] == "edit": // discord edit PLACE MESSAGE TEXT
		if !r.discord.Edit(id(1), args[2], args[3]) {
			ts.Fatalf("there is no message %s", args[2])
		}
	case len(args) >= 3 && args[0] == "delete": // discord delete PLACE MESSAGE...
		r.discord.Delete(id(1), args[2:]...)
	case len(args) == 5 && (args[0] == "react" || args[0] == "unreact"): // discord react PLACE MESSAGE|TEXT USER EMOJI
		r.discord.React(id(1), r.discordMessage(ts, id(1), args[2], ""), id(3), args[4], args[0] == "unreact")
	case len(args) == 4 && args[0] == "press": // discord press PLACE USER LABEL: of the newest message with that button
		ts.Check(r.discord.Press(id(1), id(2), r.discordMessage(ts, id(1), "", args[3]), args[3]))
	case len(args) >= 4 && args[0] == "choose": // discord choose PLACE USER VALUE...: in the newest menu
		ts.Check(r.discord.Choose(id(1), id(2), r.discordMessage(ts, id(1), "", ""), args[3:]...))
	case len(args) == 3 && args[0] == "submit": // discord submit USER TEXT: the form that is open
		until(ts, func() (bool, string) {
			err := r.discord.Submit(id(1), args[2])
			return err == nil, fmt.Sprint(err)
		})
	case len(args) == 3 && args[0] == "fill": // discord fill USER JSON: sends the form that is open, with values by label
		var values map[string][]string
		ts.Check(json.Unmarshal([]byte(args[2]), &values))
		until(ts, func() (bool, string) {
			err := r.discord.Fill(id(1), values)
			return err == nil, fmt.Sprint(err)
		})
	case (len(args) == 4 || len(args) == 5) && args[0] == "slash": // discord slash PLACE USER COMMAND [TEXT]
		r.discord.Slash(id(1), id(2), args[3], strings.Join(args[4:], ""))
	case len(args) == 3 && args[0] == "whispered": // discord whispered USER REGEXP: only that user saw it
		until(ts, func() (bool, string) {
			all := r.discord.Whispers(id(1))
			return slices.ContainsFunc(all, regexp.MustCompile(args[2]).MatchString), fmt.Sprintf("there is %q", all)
		})
	case (len(args) == 3 || len(args) == 4) && args[0] == "expect": // discord expect PLACE REGEXP [VARIABLE]
		r.expect(ts, "discord "+args[1], args[2:], func() []string { return r.onDiscord(id(1)) })
	case len(args) == 2 && args[0] == "expect-none": // discord expect-none PLACE
		r.settle(ts, nil)
		r.expectNone(ts, "discord "+args[1], r.onDiscord(id(1)))
	case len(args) == 3 && args[0] == "shows": // discord shows PLACE COUNT
		if n := len(r.onDiscord(id(1))); strconv.Itoa(n) != args[2] {
			ts.Fatalf("there are %d messages: %q", n, r.onDiscord(id(1)))
		}
	case len(args) == 1 && (args[0] == "leave" || args[0] == "join"): // discord leave: the server removes the bot
		r.discord.LeaveGuild(discordGuild, args[0] == "leave")
	case len(args) == 2 && args[0] == "remove": // discord remove PLACE: a channel or a thread
		r.discord.DeleteChannel(id(1))
	case len(args) == 3 && args[0] == "title": // discord title PLACE NAME: of the channel
		r.discord.Rename(id(1), args[2])
	case len(args) == 1 && args[0] == "expire": // discord expire: no session can be resumed
		r.discord.Expire()
	case len(args) == 2 && args[0] == "disconnect": // discord disconnect CODE: 0 for none
		code, err := strconv.Atoi(args[1])
		ts.Check(err)
		r.discord.Disconnect(code)
	case len(args) == 2 && args[0] == "forbid": // discord forbid content|claimed: the Message Content intent
		r.discord.Forbid(args[1] == "claimed")
	case len(args) == 1 && args[0] == "stored": // discord stored: every event is
		until(ts, func() (bool, string) {
			n := r.discord.Unnamed()
			return n == 0, fmt.Sprintf("%d events are not stored", n)
		})
	case len(args) == 1 && args[0] == "revoke": // discord revoke: the token
		r.discord.Revoke()
	case len(args) == 3 && args[0] == "sessions": // discord sessions STARTED RESUMED: so many in all
		until(ts, func() (bool, string) {
			started, resumed := r.discord.Sessions()
			return fmt.Sprint(started, resumed) == args[1]+" "+args[2], fmt.Sprintf("%d started, %d resumed", started, resumed)
		})
	default:
		ts.Fatalf(usage)
	}
}

// discordMessage is the newest message of the bot with a text, or with a button; without
// either, with a menu. A number is the id of any message.
func (r *rig) discordMessage(ts *testscript.TestScript, channel, text, label string) (found string) {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		return text
	}
	until(ts, func() (bool, string) {
		for _, m := range r.discord.Sent(channel) {
			if text != "" && discordtest.Visible(m.Content) == text || text == "" && m.Has(label) {
				found = m.ID
			}
		}
		return found != "", "there is no such message"
	})
	return found
}

func (r *rig) onDiscord(channel string) []string {
	var texts []string
	for _, m := range r.discord.Sent(channel) {
		text := discordtest.Visible(m.Content)
		for _, f := range m.Files {
			text += "[" + f.Name + "]"
		}
		texts = append(texts, text)
	}
	return texts
}
