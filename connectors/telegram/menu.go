package telegram

import (
	"context"
	"slices"
	"strings"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A scope says where Telegram shows a menu; a narrower one hides the wider
// (core.telegram.org/bots/api#botcommandscope, read 2026-11-28).
type scope struct {
	Type   string `json:"type"`
	ChatID string `json:"chat_id,omitempty"`
}

// menuCommand is an entry of a menu.
type menuCommand struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// forAdministrators are the commands that concern all members of a group; menus show them to
// its administrators. Other members may use them all the same.
var forAdministrators = []string{"model", "language", "timezone", "compact", "reset"}

// maxOperators bounds the menus that are set at a start.
const maxOperators = 20

// setMenus registers the menus of commands: for private chats, for members and administrators of
// groups, and for the private chats of operators, each in all languages. Operators who are none
// any more lose theirs.
func (c *Connector) setMenus(ctx context.Context) {
	members := slices.DeleteFunc(slices.Clone(connectors.Commands), func(m connectors.Command) bool { return slices.Contains(forAdministrators, m.Name) })
	c.setMenu(ctx, nil, connectors.Commands)
	c.setMenu(ctx, &scope{Type: "all_group_chats"}, members)
	c.setMenu(ctx, &scope{Type: "all_chat_administrators"}, connectors.Commands)
	var operators []string
	if c.cfg.Operators != nil {
		operators = c.cfg.Operators()
	}
	operators = operators[:min(len(operators), maxOperators)]
	for _, id := range c.formerOperators(ctx, operators) {
		c.setMenu(ctx, &scope{Type: "chat", ChatID: id}, nil)
	}
	for _, id := range operators {
		c.setMenu(ctx, &scope{Type: "chat", ChatID: id}, slices.Concat(connectors.Commands, connectors.OperatorCommands))
	}
}

// formerOperators returns those whose menu an earlier start has set, and notes the present ones.
func (c *Connector) formerOperators(ctx context.Context, now []string) (former []string) {
	if c.cfg.Marks == nil {
		return nil
	}
	key, list := "telegram/"+c.bot+"/operators", strings.Join(now, " ")
	before, err := c.cfg.Marks.Checkpoint(ctx, key)
	if err == nil && before != list {
		err = c.cfg.Marks.SetCheckpoint(ctx, key, list)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn("failed to note whose menus have the commands for operators", "err", err)
		}
		return nil
	}
	return slices.DeleteFunc(strings.Fields(before), func(id string) bool { return slices.Contains(now, id) })
}

// setMenu registers a menu in all languages; without commands it deletes them. in is nil for the
// menu of all chats that have no other.
func (c *Connector) setMenu(ctx context.Context, in *scope, commands []connectors.Command) {
	method := "setMyCommands"
	if len(commands) == 0 {
		method = "deleteMyCommands"
	}
	for _, language := range texts.All() {
		params := make(map[string]any)
		if len(commands) > 0 {
			var menu []menuCommand
			for _, m := range commands {
				menu = append(menu, menuCommand{m.Name, texts.Voice{Language: language}.In(m.Help)})
			}
			params["commands"] = menu
		}
		if in != nil {
			params["scope"] = in
		}
		if language != texts.English { // which is for all others
			params["language_code"] = language
		}
		var done bool
		if err := c.send.call(ctx, method, params, &done); err != nil && ctx.Err() == nil {
			c.log.Warn("failed to register a command menu", "language", language, "scope", in, "err", err)
		}
	}
}
