package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

var _ tools.Messages = (*Output)(nil)

// A chatFound is a chat that an agent may write into.
type chatFound struct {
	route   claybot.Route
	readers claybot.Audience
	own     bool // where the run answers, or of the agent's person
}

// A noChatError says that an agent may not write into a chat; it is words for the model.
type noChatError string

func (e noChatError) Error() string { return string(e) }

// findTime bounds the search for a chat where no context does.
const findTime = 10 * time.Second

// SendMessage implements tools.Messages. The parts of the message have ids made of the call, so
// a call that is made again sends nothing new, and succeeds although nothing could be sent there
// any more.
func (o *Output) SendMessage(ctx context.Context, env tools.Env, to, text string) (string, error) {
	key := fmt.Sprintf("message/%s/%s", env.Run, env.CallID)
	switch was, err := o.outbox.OutgoingByID(ctx, key+"/1"); {
	case err == nil:
		return was.Route.Connector + ":" + was.Route.ChannelID, nil
	case !errors.Is(err, storage.ErrNotFound):
		return "", fmt.Errorf("find out whether the message was sent before: %w", err)
	}
	found, err := o.chat(ctx, env, to)
	if err != nil {
		return "", err
	}
	r := found.route
	switch _, sends := o.connector(r.Connector).(connectors.Sender); {
	case !sends:
		return "", fmt.Errorf("there is no connector %s that sends messages", r.Connector)
	case !o.people.MayReceive(claybot.Outgoing{Route: r}):
		return "", errors.New("nothing may be sent there any more: its person has no access")
	case !o.sender.Routes.Reachable(r):
		return "", &tools.Fault{Code: tools.FaultFailed, Text: "the chat cannot be reached now: its connector does not work, or its platform refuses messages there", Retriable: true}
	}
	err = o.sender.SendOnce(ctx, claybot.Outgoing{
		Kind: claybot.OutgoingFile, Run: env.Run, Agent: env.Agent.ID, Message: o.work.Of(env.Run).Newest().ID, Route: r,
		Once: env.Agent.Descriptor.Scheduled(),
	}, key, claybot.Clean(text))
	if err != nil {
		return "", fmt.Errorf("send the message: %w", err)
	}
	return r.Connector + ":" + r.ChannelID, nil
}

// OwnChat implements tools.Messages.
func (o *Output) OwnChat(env tools.Env, to string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), findTime)
	defer cancel()
	found, err := o.chat(ctx, env, to)
	return err == nil && found.own || errors.As(err, new(noChatError)) // which reaches nothing
}

// Tells implements tools.Messages. While the readers cannot be found out, no person may approve
// the call.
func (o *Output) Tells(ctx context.Context, env tools.Env, to string) *tools.Disclosure {
	found, err := o.chat(ctx, env, to)
	if errors.As(err, new(noChatError)) {
		return nil // the call fails, and says why
	}
	if err != nil {
		return &tools.Disclosure{Text: texts.Of(ctx).In(texts.DisclosesUnknown)}
	}
	mine := o.readers(ctx, env)
	if !o.people.Discloses(mine, found.readers) {
		return nil
	}
	program := o.people.Program(env.Agent.Descriptor) && mine.Owner == env.Agent.Descriptor.OwnerID()
	return &tools.Disclosure{Owners: []string{mine.Owner}, Program: program, Text: texts.Of(ctx).Discloses(texts.OfConversation, mine, found.readers)}
}

// ReplyDiscloses returns what a text of a run which others may not read makes readable in a chat that an
// operator chose; nil for nothing. While the readers cannot be found out, no person may approve it.
func (o *Output) ReplyDiscloses(ctx context.Context, env tools.Env, to claybot.Route) *tools.Disclosure {
	found, err := o.listedChat(ctx, to.Connector, to.ChannelID)
	if err != nil {
		return &tools.Disclosure{Text: texts.Of(ctx).In(texts.DisclosesUnknown)}
	}
	mine := o.readers(ctx, env)
	if !o.people.Discloses(mine, found.readers) {
		return nil
	}
	by, user, _ := strings.Cut(mine.Owner, "/")
	program := o.people.Program(claybot.User(by, "", user))
	return &tools.Disclosure{Owners: []string{mine.Owner}, Program: program, Text: texts.Of(ctx).Discloses(texts.OfConversation, mine, found.readers)}
}

// chat finds a chat that an agent may write into: where its run answers, another conversation of
// its person, or one that the operator lists for its profile.
func (o *Output) chat(ctx context.Context, env tools.Env, to string) (chatFound, error) {
	here := o.work.Of(env.Run).Route()
	if to == "" || here.Connector != "" && to == here.Connector+":"+here.ChannelID {
		if here.Connector == "" {
			return chatFound{}, noChatError("this run answers nowhere, so say to which chat: connector:channel")
		}
		return chatFound{here, o.readers(ctx, env), true}, nil
	}
	to = o.people.Named(to)
	connector, channel, ok := strings.Cut(to, ":")
	if !ok || connector == "" || channel == "" {
		return chatFound{}, noChatError("field to: want connector:channel, such as slack:T1/C1 or telegram:1001")
	}
	may, err := o.profiles.Permissions(ctx, env.Agent)
	if err != nil {
		return chatFound{}, err
	}
	listed := o.profiles.Of(env.Agent.ID, env.Agent.Descriptor).SendTo
	refused := noChatError(fmt.Sprintf("you may not write to %.80q; besides the chats of your person, you may write to: %s", to, strings.Join(append(listed, "none")[:max(len(listed), 1)], ", ")))
	names := func(list []string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return o.people.Named(name) == to })
	}
	if may.Routes != nil && !names(may.Routes) {
		return chatFound{}, refused
	}
	found, ok, err := o.ownChat(ctx, env.Agent.Descriptor, connector, channel)
	if ok && found.readers.Place != "" && names(listed) { // the channel, not a thread of it
		found.route = claybot.Route{Connector: connector, ChannelID: channel}
	}
	if ok || err != nil {
		return found, err
	}
	if !names(listed) {
		return chatFound{}, refused
	}
	return o.listedChat(ctx, connector, channel)
}

// ownChat finds the conversation of the person of d in a channel: of several, such as those of
// threads, the one that the person wrote in last.
func (o *Output) ownChat(ctx context.Context, d claybot.Descriptor, connector, channel string) (chatFound, bool, error) {
	if d.OwnerID() == "" {
		return chatFound{}, false, nil
	}
	there, err := o.index.ChannelAgents(ctx, connector, channel)
	if err != nil {
		return chatFound{}, false, fmt.Errorf("find the agents of a channel: %w", err)
	}
	ids := o.people.Identities(d.OwnerID())
	slices.SortStableFunc(there, func(a, b storage.IndexEntry) int { return cmp.Compare(b.LastUserAt, a.LastUserAt) })
	for _, e := range there {
		if !slices.Contains(ids, e.Descriptor.OwnerID()) || o.people.Program(e.Descriptor) || !o.people.MayWrite(e.Descriptor) {
			continue
		}
		c, err := o.people.LastContext(ctx, e.ID)
		if err != nil {
			return chatFound{}, false, err
		}
		return chatFound{claybot.AgentMessage{Context: c}.ReplyRoute(e.Descriptor), o.people.AudienceOf(e.Descriptor, claybot.Route{}), true}, true, nil
	}
	return chatFound{}, false, nil
}

// listedChat returns a chat that the operator lists. In a direct chat, the message is for its
// person, who must still have access when it is sent.
func (o *Output) listedChat(ctx context.Context, connector, channel string) (chatFound, error) {
	there, err := o.index.ChannelAgents(ctx, connector, channel)
	if err != nil {
		return chatFound{}, fmt.Errorf("find the agents of a channel: %w", err)
	}
	found := chatFound{route: claybot.Route{Connector: connector, ChannelID: channel}, readers: claybot.Audience{Place: connector + "/" + channel}}
	if len(there) == 0 {
		return found, nil
	}
	d := there[0].Descriptor
	if found.readers = o.people.AudienceOf(d, claybot.Route{}); found.readers.Place == "" {
		found.route.UserID = d.UserID
	}
	return found, nil
}
