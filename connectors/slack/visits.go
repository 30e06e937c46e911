package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A visit says that a person opened the app.
type visit struct {
	channel  string // the direct chat
	thread   string // of an app with an assistant_view, which Slack begins for each conversation
	home     bool   // the Home tab
	earlier  bool   // a page was published there before
	outsider bool
}

// visit reads that a person opened the app: its Home tab; the messages tab, which is the panel of apps with an
// agent_view, or a new conversation with an app that has an assistant_view.
//
// Shapes: docs.slack.dev/reference/events/app_home_opened and …/assistant_thread_started, read
// 2026-11-28.
func (e event) visit(name string, self identity) (incoming, verdict) {
	v := e.Event
	in := incoming{visit: visit{channel: v.Channel}}
	user := v.User
	switch {
	case v.Type == "assistant_thread_started":
		user, in.visit.channel, in.visit.thread = v.Assistant.User, v.Assistant.Channel, v.Assistant.Thread
		if in.visit.thread == "" {
			return incoming{}, unknown
		}
	case v.Tab == "home":
		in.visit.home, in.visit.earlier = true, v.View.ID != ""
	case v.Tab != "messages":
		return incoming{}, nothing
	}
	var ok bool
	if in.to, in.visit.outsider, ok = self.principal(name, in.visit.channel, user, e.Team); !ok {
		return incoming{}, unknown
	}
	return in, visited
}

// welcome suggests to a person with access what to ask. If Slack refuses, the person sees the
// chat without it.
func (r *receiver) welcome(ctx context.Context, in incoming) {
	if r.greets != nil && in.visit.home {
		if err := r.publish(ctx, in); err != nil {
			r.log.Debug("failed to show the home page", "user", in.to.UserID, "err", err)
		}
		return
	}
	if r.greets == nil || !(App{Without: r.chat.cfg.Without}).with(Panel) || !r.greets.Welcome(in.to, in.visit.outsider) {
		return
	}
	r.untitled(ctx, in.visit)
	if err := r.chat.suggest(ctx, in.visit, texts.To(ctx, in.to)); err != nil {
		r.log.Debug("failed to suggest prompts", "user", in.to.UserID, "err", err)
	}
}

// suggest sets the suggested prompts of a chat, for apps with an assistant_view those of a
// thread. With a thread, Slack ignores the call of an app that has an agent_view
// (docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts, read 2026-11-28).
func (c *Connector) suggest(ctx context.Context, v visit, voice texts.Voice) error {
	if c.penalties.left(methodPrompts, v.channel) > 0 {
		return nil // they are there from the last visit
	}
	var prompts []slackapi.AssistantThreadsPrompt
	for _, p := range texts.Prompts {
		prompts = append(prompts, slackapi.AssistantThreadsPrompt{Title: voice.In(p.Title), Message: voice.In(p.Message)})
	}
	args := url.Values{"channel_id": {v.channel}, "prompts": {compact(prompts)}, "title": {voice.In(texts.PromptsTitle)}}
	if v.thread != "" {
		args.Set("thread_ts", v.thread)
	}
	var answer pageInfo
	err := c.readAnswer(ctx, methodPrompts, args, &answer, &answer)
	if wait := waitFor(err); wait > 0 {
		c.penalties.add(methodPrompts, v.channel, wait)
	}
	if err != nil {
		return c.refused(methodPrompts, c.cfg.BotTokenName, err)
	}
	return nil
}

// publish shows a person their own work on the Home tab, as it is now. A person without access
// sees nothing, and one who had access before sees that it is gone.
//
// Shapes: docs.slack.dev/reference/methods/views.publish, read 2026-11-28: it needs no scope, and
// replaces what that person saw.
func (r *receiver) publish(ctx context.Context, in incoming) error {
	c := r.chat
	if !(App{Without: c.cfg.Without}).with(Home) || c.penalties.left(methodHome, "") > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, homeTime)
	defer cancel()
	page, err := r.greets.Home(ctx, in.to, in.visit.outsider)
	if err != nil {
		return err
	}
	if len(page) == 0 {
		if !in.visit.earlier {
			return nil
		}
		page = []connectors.HomeSection{{Text: texts.To(ctx, in.to).In(texts.HomeNoAccess)}}
	}
	view, err := json.Marshal(home(page))
	if err != nil {
		return fmt.Errorf("write the home page: %w", err)
	}
	user, _ := c.local(in.to.UserID)
	var answer pageInfo
	err = c.readAnswer(ctx, methodHome, url.Values{"user_id": {user}, "view": {string(view)}}, &answer, &answer)
	if wait := waitFor(err); wait > 0 {
		c.penalties.add(methodHome, "", wait)
	}
	if err != nil {
		return c.refused(methodHome, c.cfg.BotTokenName, err)
	}
	return nil
}

// home returns the view of a page. A long section is cut.
func home(page []connectors.HomeSection) slackapi.HomeTabViewRequest {
	var all []slackapi.Block
	for _, s := range page {
		if s.Title != "" {
			all = append(all, slackapi.NewHeaderBlock(plainText(connectors.OneLine(s.Title, maxHeaderChars))))
		}
		parts := sections(s.Text)
		all = append(all, parts[:min(len(parts), maxHomeParts)]...)
	}
	return slackapi.HomeTabViewRequest{Type: slackapi.VTHomeTab, Blocks: slackapi.Blocks{BlockSet: all}}
}
