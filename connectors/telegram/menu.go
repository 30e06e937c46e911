package telegram

import (
	"context"
	"errors"
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
	c.setOperatorMenus(ctx, operators[:min(len(operators), maxOperators)])
}

// setOperatorMenus registers the menus of operators, and removes those of former ones. The mark names
// all who may have such a menu: it is stored before a menu is set, and again after menus were removed,
// so that a menu outlasts no crash in between. While the mark cannot be stored, only operators whom it
// names have their menus.
func (c *Connector) setOperatorMenus(ctx context.Context, operators []string) {
	before, all, err := c.noteOperators(ctx, operators)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("failed to note whose menus have the commands for operators; retrying", "err", err)
		for _, id := range operators {
			if slices.Contains(strings.Fields(before), id) {
				c.setOperatorMenu(ctx, id)
			}
		}
	}
	var back connectors.Backoff
	for err != nil {
		if !connectors.Sleep(ctx, back.Next(0)) {
			return
		}
		_, all, err = c.noteOperators(ctx, operators)
	}
	noted := strings.Join(all, " ")
	for _, id := range slices.Clone(all[len(operators):]) {
		if c.setMenu(ctx, &scope{Type: "chat", ChatID: id}, nil) {
			all = slices.DeleteFunc(all, func(old string) bool { return old == id })
		}
	}
	for _, id := range operators {
		c.setOperatorMenu(ctx, id)
	}
	if err := c.noteMenus(ctx, noted, all); err != nil && ctx.Err() == nil {
		c.log.Warn("failed to note whose menus were removed; the next start removes them again", "err", err)
	}
}

// setOperatorMenu registers the menu of an operator.
func (c *Connector) setOperatorMenu(ctx context.Context, id string) {
	c.setMenu(ctx, &scope{Type: "chat", ChatID: id}, slices.Concat(connectors.Commands, connectors.OperatorCommands))
}

// operatorsKey is the mark of those who may have a menu of operators.
func (c *Connector) operatorsKey() string { return "telegram/" + c.bot + "/operators" }

// noteOperators adds operators to the mark. It returns the mark before, and all whom it names then,
// operators first.
func (c *Connector) noteOperators(ctx context.Context, operators []string) (before string, all []string, err error) {
	if c.cfg.Marks != nil {
		if before, err = c.cfg.Marks.Checkpoint(ctx, c.operatorsKey()); err != nil {
			return "", nil, err
		}
	}
	all = slices.Clone(operators)
	for _, id := range strings.Fields(before) {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return before, all, c.noteMenus(ctx, before, all)
}

// noteMenus stores who may have a menu of operators, if that has changed.
func (c *Connector) noteMenus(ctx context.Context, before string, all []string) error {
	list := strings.Join(all, " ")
	if c.cfg.Marks == nil || list == before {
		return nil
	}
	return c.cfg.Marks.SetCheckpoint(ctx, c.operatorsKey(), list)
}

// setMenu registers a menu in all languages; without commands it deletes them. in is nil for the
// menu of all chats that have no other. done is false if a retry may do what failed.
func (c *Connector) setMenu(ctx context.Context, in *scope, commands []connectors.Command) (done bool) {
	done = true
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
		var taken bool
		err := c.send.call(ctx, method, params, &taken)
		var r *refusal
		if in != nil && errors.As(err, &r) && r.says("chat not found") {
			c.log.Info("user has no chat with the bot yet, so there is no menu to set; the next start tries again", "scope", in)
			return true
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("failed to register a command menu", "language", language, "scope", in, "err", err)
		}
		var permanent *connectors.PermanentError
		done = done && (err == nil || errors.As(classify(err, false), &permanent))
	}
	return done
}
