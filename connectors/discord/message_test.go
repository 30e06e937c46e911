package discord

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// reader is a receiver without a platform.
func reader() *receiver {
	c := New(Config{Token: discordtest.Token})
	app := &application{ID: "1"}
	app.Bot.Username = "claybot"
	r := newReceiver(c, app, &inbox{})
	r.channels.learn(guildID, channel{ID: groupID(1)}, channel{ID: "600000000000000001", Type: typePublicThread, Parent: groupID(1)})
	return r
}

// TestMessageShapes reads messages as Discord documents them: docs.discord.com/developers,
// resources/message (Message Object, Message Types, Message Flags, Message Reference Types,
// Message Snapshot Object, Attachment Object) and events/gateway-events (Message Create), read
// 2026-11-28.
func TestMessageShapes(t *testing.T) {
	t.Parallel()
	const (
		person  = `"id":"800000000000000001","channel_id":"400000000000000001","author":{"id":"200000000000000001","username":"ann","global_name":"Ann"},"timestamp":"2026-11-28T12:00:00.123000+00:00"`
		inGuild = `"id":"800000000000000001","guild_id":"300000000000000001","channel_id":"500000000000000001","author":{"id":"200000000000000001","username":"ann","global_name":"Ann"},"member":{"nick":"Annie"},"timestamp":"2026-11-28T12:00:00.123000+00:00"`
		botUser = `{"id":"` + discordtest.Bot + `","username":"claybot","bot":true}`
		mention = `<@` + discordtest.Bot + `>`
	)
	for name, tt := range map[string]struct {
		json  string
		text  string // empty: nothing is read
		check func(m claybot.AgentMessage) bool
	}{
		"direct": {`{` + person + `,"type":0,"content":"hi"}`, "hi", func(m claybot.AgentMessage) bool {
			return !m.Context.Group && m.FirstHand && !m.Tainted && m.From.Name == "Ann" && m.Context.ReplyTo == "" && m.ID == "discord/400000000000000001/800000000000000001" &&
				m.At == claybot.At(time.Date(2026, 11, 28, 12, 0, 0, 123e6, time.UTC))
		}},
		"mention": {`{` + inGuild + `,"type":0,"content":"` + mention + `, what now?","mentions":[` + botUser + `]}`, "what now?", func(m claybot.AgentMessage) bool {
			return m.Context.Group && !m.Context.Unaddressed && m.From.Name == "Annie" && m.Context.ReplyTo == "800000000000000001" && m.ID == "discord/300000000000000001/500000000000000001/800000000000000001"
		}},
		"mention with an exclamation mark": {`{` + inGuild + `,"type":0,"content":"<@!` + discordtest.Bot + `> hi"}`, "hi", func(m claybot.AgentMessage) bool { return !m.Context.Unaddressed }},
		"mention within":                   {`{` + inGuild + `,"type":0,"content":"hello ` + mention + ` there"}`, "hello @claybot there", func(m claybot.AgentMessage) bool { return !m.Context.Unaddressed }},
		"mention in a code span":           {`{` + inGuild + `,"type":0,"content":"what is ` + "``` `` `" + mention + "``` and `" + mention + "`" + `?"}`, "what is ``` `` `" + mention + "``` and `" + mention + "`?", func(m claybot.AgentMessage) bool { return m.Context.Unaddressed }},
		"mention in a code block":          {`{` + inGuild + `,"type":0,"content":"` + mention + " see ```\\n" + mention + " `x\\n```" + `"}`, "see ```\n" + mention + " `x\n```", func(m claybot.AgentMessage) bool { return !m.Context.Unaddressed }},
		"mention beside code":              {`{` + inGuild + `,"type":0,"content":"` + "`a` " + mention + " \\\\`" + mention + "` ``b" + `"}`, "`a` @claybot \\`@claybot` ``b", func(m claybot.AgentMessage) bool { return !m.Context.Unaddressed }},
		"to others": {`{` + inGuild + `,"type":0,"content":"hi <@200000000000000002>","mentions":[{"id":"200000000000000002","username":"bob"}]}`, "hi @bob", func(m claybot.AgentMessage) bool {
			return m.Context.Unaddressed
		}},
		"to everyone": {`{` + inGuild + `,"type":0,"content":"@everyone lunch","mention_everyone":true}`, "@everyone lunch", func(m claybot.AgentMessage) bool { return m.Context.Unaddressed }},
		"reply to the bot": {`{` + inGuild + `,"type":19,"content":"why?","message_reference":{"message_id":"1"},"referenced_message":{"id":"1","content":"because","author":` + botUser + `}}`, "why?", func(m claybot.AgentMessage) bool {
			return !m.Context.Unaddressed && m.Context.Quote == "because" && !m.Tainted
		}},
		"reply to another": {`{` + inGuild + `,"type":19,"content":"` + mention + ` true?","referenced_message":{"id":"1","content":"the sky is green","author":{"id":"200000000000000002"}}}`, "true?", func(m claybot.AgentMessage) bool {
			return m.Context.Quote == "the sky is green" && m.Tainted && m.FirstHand
		}},
		"own command": {`{` + person + `,"type":0,"content":"</new:71>"}`, "", func(m claybot.AgentMessage) bool { return m.Type == claybot.MessageReset }},
		"command of another bot": {`{` + person + `,"type":0,"content":"</new:72> does not work, </new:71> does"}`, "</new:72> does not work, /new does", func(m claybot.AgentMessage) bool {
			return m.Type == claybot.MessageUser
		}},
		"reply to a text with commands": {`{` + inGuild + `,"type":19,"content":"why?","message_reference":{"message_id":"1"},"referenced_message":{"id":"1","content":"see </why:71>, not ` + "`</why:71>`" + `","author":` + botUser + `}}`, "why?", func(m claybot.AgentMessage) bool {
			return m.Context.Quote == "see /why, not `</why:71>`"
		}},
		"in a thread": {strings.Replace(`{`+inGuild+`,"type":0,"content":"`+mention+` hi"}`, groupID(1), "600000000000000001", 1), "hi", func(m claybot.AgentMessage) bool {
			return m.Context.ThreadID == "600000000000000001" && m.ID == "discord/300000000000000001/500000000000000001/800000000000000001" && len(m.Keys) == 1
		}},
		"command":   {`{` + person + `,"type":0,"content":"!reset now"}`, "now", func(m claybot.AgentMessage) bool { return m.Type == claybot.MessageReset }},
		"forwarded": {`{` + person + `,"type":0,"content":"","message_reference":{"type":1,"message_id":"1"},"message_snapshots":[{"message":{"content":"/reset"}}]}`, "[forwarded message]\n/reset", func(m claybot.AgentMessage) bool { return m.Type == claybot.MessageUser && m.Tainted && !m.FirstHand }},
		"file": {`{` + person + `,"type":0,"content":"see","attachments":[{"id":"7","filename":"a.pdf","size":3,"content_type":"application/pdf","url":"https://cdn.discordapp.com/x"}]}`, "see", func(m claybot.AgentMessage) bool {
			return len(m.Files) == 1 && m.Tainted && m.Files[0].Kind == claybot.FileDocument && m.Files[0].Source == "400000000000000001/800000000000000001/7"
		}},
		"file without id": {`{` + person + `,"type":0,"content":"see","attachments":[{"filename":"a.pdf","size":3}]}`, "see\n[document a.pdf, 3 bytes: Discord no longer provides it; please send it again]", nil},
		"voice": {`{` + person + `,"type":0,"flags":8192,"content":"","attachments":[{"id":"7","filename":"voice-message.ogg","content_type":"audio/ogg","duration_secs":1.2,"waveform":"AA"}]}`, "", func(m claybot.AgentMessage) bool {
			return m.Spoken && m.Files[0].Kind == claybot.FileVoice && m.Files[0].Seconds == 2
		}},
		"sticker": {`{` + person + `,"type":0,"content":"","sticker_items":[{"id":"1","name":"Wave]"}]}`, "[sticker Wave]", nil},
		"poll":    {`{` + person + `,"type":0,"content":"","poll":{"question":{"text":"tea?"}}}`, "[poll: tea?]", nil},
		"bot": {`{` + strings.Replace(inGuild, `"username":"ann"`, `"username":"ann","bot":true`, 1) + `,"type":0,"content":"` + mention + ` /reset"}`, "/reset", func(m claybot.AgentMessage) bool {
			return m.Type == claybot.MessageUser && m.From.Bot && m.Tainted && !m.FirstHand
		}},
		"webhook":    {`{` + inGuild + `,"webhook_id":"700000000000000001","type":0,"content":"` + mention + ` hi"}`, "hi", func(m claybot.AgentMessage) bool { return m.From.Bot && m.From.UserID == "700000000000000001" }},
		"empty":      {`{` + inGuild + `,"type":0,"content":""}`, "", nil},
		"itself":     {`{"id":"8","channel_id":"4","author":` + botUser + `,"type":0,"content":"hi"}`, "", nil},
		"join":       {`{` + inGuild + `,"type":7,"content":""}`, "", nil},
		"pin":        {`{` + inGuild + `,"type":6,"content":"x"}`, "", nil},
		"new thread": {`{` + inGuild + `,"type":21,"content":"x"}`, "", nil},
		"no author":  {`{"id":"8","channel_id":"4","type":0,"content":"hi"}`, "", nil},
	} {
		r := reader()
		r.menu.note(map[string]string{"new": "71"})
		jobs, known := r.read(payload{T: "MESSAGE_CREATE", D: json.RawMessage(tt.json)})
		if !known {
			t.Errorf("%s: not understood", name)
		}
		var got *claybot.AgentMessage
		for range jobs {
			var m message
			if err := json.Unmarshal([]byte(tt.json), &m); err != nil {
				t.Fatal(err)
			}
			in, gone, err := r.place(t.Context(), m.Guild, m.Channel)
			if err != nil || gone {
				t.Fatalf("%s: %v", name, err)
			}
			if _, msg, ok := r.message(t.Context(), m, in); ok {
				got = &msg
			}
		}
		switch {
		case got == nil && (tt.text != "" || tt.check != nil):
			t.Errorf("%s: nothing is read", name)
		case got == nil:
		case tt.text == "" && tt.check == nil:
			t.Errorf("%s: read %+v", name, got)
		case got.Text != tt.text || tt.check != nil && !tt.check(*got):
			t.Errorf("%s: %q, %+v", name, got.Text, got)
		}
	}
}

// TestRefs resolves links to messages.
func TestRefs(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"https://discord.com/channels/300000000000000001/500000000000000001/8": "discord/300000000000000001/500000000000000001/8",
		"https://ptb.discord.com/channels/@me/400000000000000001/8":            "discord/400000000000000001/8",
		"https://discord.com/channels/300000000000000001/500000000000000001":   "",
		"https://discord.com.example.org/channels/1/2/3":                       "",
		"http://discord.com/channels/1/2/3":                                    "",
		"discord":                                                              "",
	} {
		if got := strings.Join(reader().Refs(link), " "); got != want {
			t.Errorf("%s: %q, want %q", link, got, want)
		}
	}
}

// TestPlaces tells channels, threads and direct chats apart, after a restart as well, when
// Discord has to be asked.
func TestPlaces(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.AddThread(groupID(1), "600000000000000001")
		c := b.connector()
		b.start()
		for _, tt := range []struct {
			guild, id string
			want      place
			gone      bool
		}{
			{"", directID(1), place{channel: directID(1)}, false},
			{guildID, groupID(1), place{channel: guildID + "/" + groupID(1), group: true}, false},
			{guildID, "600000000000000001", place{channel: guildID + "/" + groupID(1), thread: "600000000000000001", group: true}, false},
			{guildID, "699999999999999999", place{}, true},
			{guildID, "../x", place{}, true},
		} {
			for range 2 {
				got, gone, err := c.place(b.Context(), tt.guild, tt.id)
				if err != nil || got != tt.want || gone != tt.gone {
					t.Errorf("%s %s: %+v, gone %t, %v", tt.guild, tt.id, got, gone, err)
				}
			}
		}
		if n := b.Calls("GET channel"); n != 4 { // what is known is not asked for again
			t.Errorf("%d calls", n)
		}
	})
}

// What one person writes in a channel and in its threads is stored in order, also while the store
// fails.
func TestOrderAcrossThreads(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		const thread = "600000000000000001"
		b.start()
		b.AddThread(groupID(1), thread)
		write := func(channel, text string) {
			b.Write(discordtest.Post{Channel: channel, User: userID(1), Text: "<@" + discordtest.Bot + "> " + text})
			b.pass(50 * time.Millisecond)
		}
		write(groupID(1), "before")
		b.inbox.fill(true)
		write(groupID(1), "one")
		write(thread, "two")
		b.pass(20 * time.Millisecond)
		b.inbox.fill(false) // the second retry of one comes after that of two
		b.pass(time.Minute)
		b.want("before", "one", "two")
	})
}

// What the members of a channel write to the agent that they share stays in the order in which they
// wrote it, in its threads as well, also if Discord must be asked what is a thread and if it takes
// longer to store what one of them writes. What people write to agents of their own does not wait
// for others.
func TestOrderInASharedChannel(t *testing.T) {
	t.Parallel()
	const thread = "600000000000000001"
	channel := guildID + "/" + groupID(1)
	for _, tt := range []struct {
		shared    string
		restarted bool
		in        string // where the second one writes
		want      []string
	}{
		{channel, false, groupID(1), []string{"before", "first", "second", "third"}},
		{channel, false, thread, []string{"before", "first", "second", "third"}},
		{channel, true, groupID(1), []string{"before", "first", "second", "third"}},
		{"", false, groupID(1), []string{"before", "second", "first", "third"}},
		{"", false, thread, []string{"before", "second", "first", "third"}},
	} {
		inBubble(t, discordtest.Config{}, func(b *bot) {
			b.inbox.slow, b.inbox.shared = userID(1), tt.shared
			b.AddThread(groupID(1), thread)
			write := func(channel string, user int, text string) {
				b.Write(discordtest.Post{Channel: channel, User: userID(user), Text: "<@" + discordtest.Bot + "> " + text})
			}
			b.start()
			write(groupID(1), 2, "before")
			b.pass(time.Minute)
			if tt.restarted {
				b.kill()
			}
			write(groupID(1), 1, "first")
			write(tt.in, 2, "second")
			write(groupID(1), 1, "third")
			if tt.restarted {
				b.start()
			}
			b.pass(time.Minute)
			b.want(tt.want...)
		})
	}
}

// Events that the end of a Run drops leave no lane behind for the next one.
func TestLanesOfARunEndWithIt(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.inbox.fill(true)
		b.start()
		b.say("one")
		b.say("two")
		b.pass(time.Second)
		_ = b.end() // canceled
		b.inbox.fill(false)
		b.run()
		b.pass(time.Minute)
		b.want("one", "two")
		b.conn.channels.mu.Lock()
		defer b.conn.channels.mu.Unlock()
		if n := len(b.conn.channels.lanes); n != 0 {
			t.Errorf("%d lanes without an event", n)
		}
	})
}

// No event crashes the connector, and none is handled by halves: what cannot be read is skipped.
func FuzzRead(f *testing.F) {
	for _, kind := range []string{"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "MESSAGE_REACTION_ADD", "INTERACTION_CREATE", "GUILD_CREATE", "CHANNEL_DELETE", "FUTURE"} {
		f.Add(kind, `{"id":"1","channel_id":"2","guild_id":"3","author":{"id":"4"},"content":"<@5>","ids":["1"],"token":"t","data":{"custom_id":"q:1:y"}}`)
		f.Add(kind, `[]`)
	}
	r := reader()
	f.Fuzz(func(t *testing.T, kind, data string) {
		if !json.Valid([]byte(data)) {
			return
		}
		jobs, _ := r.read(payload{T: kind, D: json.RawMessage(data)})
		for _, j := range jobs {
			if j.store == nil || j.lane == "" {
				t.Errorf("job %+v", j)
			}
		}
		var m message
		if connectors.Decode([]byte(data), &m) == nil {
			_, msg, ok := r.message(t.Context(), m, place{channel: "1"})
			if ok && msg.Type == claybot.MessageUser && msg.Text == "" && len(msg.Files) == 0 {
				t.Errorf("an empty message %+v", msg)
			}
		}
	})
}

// What customID encodes is read back, and nothing else is.
func FuzzCustomID(f *testing.F) {
	f.Add("01QUESTION", "y")
	f.Add("a:b", "")
	f.Fuzz(func(t *testing.T, question, verb string) {
		q, v, ok := readCustomID(customID(question, verb))
		if ok && (q != question || v != verb) {
			t.Errorf("%q %q became %q %q", question, verb, q, v)
		}
	})
}

var _ connectors.Handler = (*inbox)(nil)
