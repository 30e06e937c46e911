package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// admits reports whether a message is /pair or /allow.
func admits(m claybot.AgentMessage) bool {
	return m.Type == claybot.MessageCommand && (m.Command == "pair" || m.Command == "allow")
}

// known returns a message as what it is of its sender: of other people than operators, /pair and
// /allow are unknown commands, and !pair and !allow are texts like any other.
func (i *intake) known(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (claybot.AgentMessage, error) {
	if m.Type == claybot.MessageUser && m.Command == connectors.Unknown {
		return i.named(ctx, agent, m)
	}
	if m.Type == claybot.MessageUser && m.Command != "" {
		if !m.FirstHand || !byOperator(i.people, agent, m) {
			m.Command = ""
			return m, nil
		}
		m.Type, m.Text = claybot.MessageCommand, connectors.Argument(m.Text)
	}
	if !admits(m) {
		return m, nil
	}
	if err := i.people.RefreshRole(ctx, author(agent, m)); err != nil { // another member may have changed the role of the sender
		return m, err
	}
	if !byOperator(i.people, agent, m) {
		m.Command, m.Text = connectors.Unknown, "/"+m.Command
		return m, nil
	}
	return m, i.people.Load(ctx) // the command is about access that another member may have changed
}

// admit executes /pair and /allow of an operator; taken reports whether m was one. The grant or the
// role, the notice to the new person and the answer are stored with the command, so a redelivered command
// does nothing: it counts no code as wrong that it has used up, and restores no access and no role that was
// taken since.
func (o *orders) admit(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (done storage.Posted, taken bool, err error) {
	if !admits(m) {
		return done, false, nil
	}
	if before, err := o.questions.Texts.StoredAs(ctx, m.ID); err != nil || before.Type != "" {
		return done, true, inbox.Unfinished(err)
	}
	p := storage.Posting{To: agent.ID, Message: m, Skip: "command"}
	var text string
	switch v := texts.Of(ctx); {
	case !o.people.ReadsCauses(agent, m) || o.people.AudienceOf(agent.Descriptor, claybot.Route{}).Place != "":
		text = v.In(texts.OperatorsAlone)
	case m.Command == "allow":
		p.Grant, text = o.allowed(ctx, m)
	case ordersRole(m):
		p.Role, text, err = o.role(ctx, agent, m)
	default:
		p.Grant, p.Replies, text, err = o.paired(ctx, m)
	}
	if err != nil {
		return done, true, err
	}
	answer := func(text string) []claybot.Outgoing {
		return o.sender.Compose(delivery.ReplyTo(agent, m, claybot.OutgoingCommand), text)
	}
	notices := p.Replies
	p.Replies = append(answer(text), notices...)
	if done, err = o.inboxes.Post(ctx, p); p.Role != nil && errors.Is(err, storage.ErrState) {
		p.Role, p.Replies = nil, answer(texts.Of(ctx).In(texts.RoleOfLastOwner))
		done, err = o.inboxes.Post(ctx, p)
	}
	if err != nil || !done.Added {
		return done, true, err
	}
	if done.Role != nil {
		o.people.NoteRole(*done.Role)
	}
	if g := p.Grant; g != nil {
		o.people.Remember(*g)
		o.people.NoteApproved(ctx, *g)
		o.log.Info("access granted in a chat", "connector", g.Connector, "subject", g.Subject, "by", author(agent, m))
	}
	o.accepting.accepted(ctx, agent, m, done)
	return done, true, nil
}

// paired returns what /pair stores, and the answer to it.
func (o *orders) paired(ctx context.Context, m claybot.AgentMessage) (*storage.Grant, []claybot.Outgoing, string, error) {
	v, verb, code := texts.Of(ctx), "approve", strings.TrimSpace(m.Text)
	if first, rest, _ := strings.Cut(code, " "); slices.Contains([]string{"approve", "deny", "ignore"}, strings.ToLower(first)) { // as on the command line
		verb, code = strings.ToLower(first), strings.TrimSpace(rest)
	}
	if code == "" {
		open, err := o.people.Pairings(ctx)
		return nil, nil, v.PairingList(open), err
	}
	if r, closed, err := o.people.DecidedRequest(ctx, code); closed || err != nil {
		return nil, nil, closedRequest(v, r), err
	}
	var p storage.Pairing
	var grant storage.Grant
	var notice claybot.Outgoing
	var err error
	switch verb {
	case "deny":
		p, err = o.people.Refuse(ctx, code, people.VerdictDenied)
	case "ignore":
		p, err = o.people.Refuse(ctx, code, people.VerdictIgnored)
	default:
		p, grant, notice, err = o.people.Approval(ctx, code)
	}
	switch {
	case errors.Is(err, people.ErrBadCode):
		if r, closed, err := o.people.DecidedRequest(ctx, code); closed || err != nil { // another operator was faster
			return nil, nil, closedRequest(v, r), err
		}
		return nil, nil, v.In(texts.NoSuchCode), nil
	case errors.Is(err, people.ErrCodesLocked):
		return nil, nil, v.In(texts.CodesLocked), nil
	case err != nil:
		return nil, nil, "", fmt.Errorf("decide a pairing request: %w", err)
	case verb == "deny":
		return nil, nil, v.AccessDenied(p.Connector, p.UserID, p.Name), nil
	case verb == "ignore":
		return nil, nil, v.AccessIgnored(p.Connector, p.UserID, p.Name), nil
	}
	return &grant, []claybot.Outgoing{notice}, v.HasAccess(p.Connector, p.UserID, p.Name), nil
}

// closedRequest says what became of a request.
func closedRequest(v texts.Voice, r people.Request) string {
	switch r.Verdict {
	case people.VerdictApproved:
		return v.RequestApproved(r.Connector, r.UserID, r.Name, r.At)
	case people.VerdictDenied, people.VerdictIgnored:
		return v.RequestDenied(r.Connector, r.UserID, r.Name, r.At)
	}
	return v.RequestClosed(r.Connector, r.UserID, r.Name)
}

// allowed returns the grant of /allow, and the answer to it.
func (o *orders) allowed(ctx context.Context, m claybot.AgentMessage) (*storage.Grant, string) {
	v, who := texts.Of(ctx), strings.TrimSpace(m.Text)
	if who == "" {
		return nil, v.In(texts.AllowWhat)
	}
	connector, subject, err := o.subject(who)
	if err != nil {
		return nil, v.NotAllowed(err)
	}
	grant := o.people.ByID(connector, subject)
	return &grant, v.HasAccess(connector, subject, "")
}

// roleVerb is the word of /pair that changes a role.
const roleVerb = "role"

// ordersRole reports whether /pair is to change a role.
func ordersRole(m claybot.AgentMessage) bool {
	words := strings.Fields(m.Text)
	return m.Command == "pair" && len(words) > 0 && strings.EqualFold(words[0], roleVerb)
}

// role returns the change of the role of a person, if an owner orders it, and the answer.
func (o *orders) role(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (*storage.RoleChange, string, error) {
	v, by, words := texts.Of(ctx), author(agent, m), strings.Fields(m.Text)[1:]
	roles := []storage.Role{storage.RoleOwner, storage.RoleOperator, storage.RoleUser}
	switch {
	case !o.people.OrdersRoles(agent.Descriptor.Connector):
		return nil, v.In(texts.RoleNotOnPage), nil
	case o.people.RoleOfPerson(by) != storage.RoleOwner:
		return nil, v.In(texts.OwnersAlone), nil
	case len(words) != 2 || !slices.Contains(roles, storage.Role(strings.ToLower(words[1]))):
		return nil, v.In(texts.RoleWhat), nil
	}
	connector, user, err := o.subject(words[0])
	if err != nil {
		return nil, v.NotAllowed(err), nil
	}
	role := storage.Role(strings.ToLower(words[1]))
	c, err := o.people.RoleChange(ctx, connector+"/"+user, role, by)
	for why, text := range map[error]string{
		people.ErrRoleConfigured: texts.RoleConfigured, people.ErrRoleOfConsole: texts.RoleOfConsole, people.ErrNoAccess: texts.RoleNoAccess,
		people.ErrNoPerson: texts.RoleNoPerson, people.ErrMayBeChannel: texts.RoleOfChannel,
	} {
		if errors.Is(err, why) {
			return nil, v.In(text), nil
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("change a role: %w", err)
	}
	return &c, v.HasRole(connector, user, role), nil
}
