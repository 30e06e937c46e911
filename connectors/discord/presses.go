package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// The types of interactions and of their responses, and the flag of what one user alone sees.
//
// docs.discord.com/developers/interactions/receiving-and-responding, read 2026-11-28: Discord
// waits three seconds for a response; the token is good for 15 minutes, in addresses that need
// no other authorization.
const (
	interactionCommand   = 2
	interactionComponent = 3
	interactionForm      = 5

	respondMessage  = 4
	respondDeferred = 5 // "is thinking…"
	respondUpdate   = 6 // nothing to see
	respondForm     = 9

	ephemeral = 1 << 6
)

// An interaction is a button press, a choice, a submitted form or a command.
type interaction struct {
	ID      string  `json:"id"`
	Type    int     `json:"type"`
	Token   string  `json:"token"` // a capability
	Guild   string  `json:"guild_id"`
	In      string  `json:"channel_id"`
	Channel channel `json:"channel"`
	Member  struct {
		User user   `json:"user"`
		Nick string `json:"nick"`
	} `json:"member"` // on a server
	User    user    `json:"user"` // in a direct chat
	Message message `json:"message"`
	Locale  string  `json:"locale"`
	Data    struct {
		Name    string `json:"name"` // of a command
		Options []struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		} `json:"options"`
		CustomID   string      `json:"custom_id"`
		Values     []string    `json:"values"`     // of a menu
		Components []component `json:"components"` // labels of a form
	} `json:"data"`
}

// by is who acts.
func (i interaction) by() user {
	if i.Guild != "" {
		return i.Member.User
	}
	return i.User
}

// interacted reads an interaction.
func (r *receiver) interacted(i interaction) []job {
	by := i.by()
	if !isID(i.ID) || i.Token == "" || !isID(by.ID) || by.Bot || !isID(i.In) {
		return nil
	}
	r.api.clock.heard(i.ID)
	if i.Channel.ID == i.In {
		r.channels.learn(i.Guild, i.Channel)
	}
	j := job{lane: lane(i.In, by.ID), what: "interaction", id: i.ID}
	switch i.Type {
	case interactionCommand:
		j.store = r.in(i.Guild, i.In, func(ctx context.Context, in place) error { return r.commanded(ctx, i, in, i.typed(), "cmd") })
		return []job{j}
	case interactionComponent, interactionForm:
	default:
		return nil
	}
	if command, ok := strings.CutPrefix(i.Data.CustomID, offerPrefix); ok {
		j.store = r.in(i.Guild, i.In, func(ctx context.Context, in place) error { return r.commanded(ctx, i, in, command, "tap") })
		return []job{j}
	}
	j.lane = "press\x00" + i.ID // Discord waits only three seconds for it
	j.store = func(ctx context.Context) error { r.pressed(ctx, i); return nil }
	return []job{j}
}

// pressed submits the answer of a component. One that cannot be stored in time is not
// acknowledged: Discord says so to the user, who presses again.
func (r *receiver) pressed(ctx context.Context, i interaction) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var in place
	var gone bool
	found := connectors.Retry(ctx, r.log, "failed to look up the channel of a press", func() (err error) {
		in, gone, err = r.place(ctx, i.Guild, i.In)
		return err
	})
	if !found || gone {
		return
	}
	who := claybot.User(r.cfg.Name, in.channel, i.by().ID)
	voice := texts.To(ctx, who)
	question, verb, ok := readCustomID(i.Data.CustomID)
	answer := claybot.Answer{Question: question}
	switch {
	case !ok:
		r.say(ctx, i, voice.In(texts.ButtonDead))
		return
	case i.Type == interactionComponent && (verb == verbForm || verb == verbReason):
		r.respond(ctx, i, respondForm, openedForm(voice, i, verb))
		return
	case i.Type == interactionComponent && verb == verbEdit:
		r.say(ctx, i, voice.SendArguments(question))
		return
	case verb == verbAll:
		r.round(ctx, i, connectors.Press{Connector: r.cfg.Name, UserID: who.UserID, ChannelID: in.channel, Answer: answer})
		return
	case i.Type == interactionForm:
		answer.Text = i.written()
		if verb == verbReason {
			answer.Text, answer.Reason = "deny", connectors.Cut(answer.Text, maxInput)
		}
	case !read(verb, i.Data.Values, &answer):
		r.say(ctx, i, voice.In(texts.ButtonDead))
		return
	}
	said, err := r.handler.Answer(ctx, connectors.Press{Connector: r.cfg.Name, UserID: who.UserID, ChannelID: in.channel, Answer: answer})
	if err != nil {
		r.log.Warn("failed to store answer; the user must repeat it", "question", question, "user", who.UserID, "err", err)
		return
	}
	if !said.OK {
		r.say(ctx, i, cmp.Or(said.Text, voice.In(texts.AnswerRejected)))
		return
	}
	r.respond(ctx, i, respondUpdate, nil)
}

// read reads the answer of a button, or of a menu in which values were chosen; ok is false if it is none.
func read(verb string, values []string, a *claybot.Answer) (ok bool) {
	switch verb {
	case verbYes:
		a.Text = "yes"
	case verbSession:
		a.Text, a.Scope = "yes", claybot.ApproveSession
	case verbNo:
		a.Text = "no"
	case verbSkip:
	case verbMenu:
		if len(values) != 1 {
			return false
		}
		a.Text = values[0]
	case verbMenus:
		list, err := json.Marshal(values)
		a.Text = string(list)
		return err == nil && len(values) > 0
	default:
		return false
	}
	return true
}

// typed is a command as a person would type it.
func (i interaction) typed() string {
	text := "/" + i.Data.Name
	for _, o := range i.Data.Options {
		if s, ok := o.Value.(string); ok && s != "" {
			text += " " + s
		}
	}
	return text
}

// commanded posts the command of an interaction, as if the user had typed it, and acknowledges
// it then. The answer is a message of its own, so nothing is left of the acknowledgement. A command
// that came too late, because the daemon was down or the conversation is being read, is not
// done: Discord has told the user that it failed, who repeats it.
func (r *receiver) commanded(ctx context.Context, i interaction, in place, command, kind string) error {
	by := i.by()
	to := claybot.User(r.cfg.Name, in.channel, by.ID)
	m := claybot.AgentMessage{
		ID:   claybot.MessageID(r.cfg.Name + "/" + in.channel + "/" + kind + "/" + i.ID),
		Type: claybot.MessageUser, Text: strings.ToValidUTF8(command, "\uFFFD"), FirstHand: true,
		From:    claybot.Sender{UserID: by.ID, Name: by.name(i.Member.Nick)},
		Context: claybot.MessageContext{ThreadID: in.thread, Group: in.group, Channel: r.channels.name(in), Locale: i.Locale},
		At:      claybot.Now(),
	}
	m, ours := connectors.Interpret(m, "/", r.app.Bot.Username)
	if !ours || strings.TrimSpace(command) == "" {
		r.say(ctx, i, texts.To(ctx, to).In(texts.ButtonDead))
		return nil
	}
	if err := r.await(ctx, in.channel); err != nil {
		return err
	}
	if r.late(ctx, i.ID) {
		r.log.Info("command came too late, skipped; the user must repeat it", "interaction", i.ID, "user", by.ID)
		return nil
	}
	if err := r.handler.Post(ctx, to, m); err != nil {
		return err
	}
	if i.Type == interactionComponent {
		r.respond(ctx, i, respondUpdate, nil)
		return nil
	}
	r.later(ctx, i.response(respondDeferred, map[string]any{"flags": ephemeral}),
		call{method: http.MethodDelete, what: "remove response", path: "/webhooks/" + r.app.ID + "/" + i.Token + "/messages/@original", open: true})
	return nil
}

// say answers an interaction with a text that only its user sees.
func (r *receiver) say(ctx context.Context, i interaction, text string) {
	r.respond(ctx, i, respondMessage, map[string]any{
		"content": connectors.Cut(format(text), maxPartUTF16), "flags": ephemeral, "allowed_mentions": map[string]any{"parse": []string{}},
	})
}

// respond acknowledges an interaction. After a restart it often comes too late, which is
// harmless: what was pressed is stored.
func (r *receiver) respond(ctx context.Context, i interaction, kind int, data any) {
	r.later(ctx, i.response(kind, data))
}

// response is the call that acknowledges an interaction.
func (i interaction) response(kind int, data any) call {
	body := map[string]any{"type": kind}
	if data != nil {
		body["data"] = data
	}
	return call{method: http.MethodPost, what: "respond to interaction", path: "/interactions/" + i.ID + "/" + i.Token + "/callback", body: body, open: true}
}

// later makes calls, one after the other, that nothing waits for and that outlive ctx.
func (r *receiver) later(ctx context.Context, calls ...call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), asideTime)
	r.aside.Go(func() {
		defer cancel()
		for _, x := range calls {
			if err := r.api.do(ctx, x, nil); err != nil && !refusedWith(err, http.StatusNotFound, codeUnknownInteraction, codeAcknowledged) {
				r.log.Warn("failed to answer an interaction", "err", err)
			}
		}
	})
}
