package discord

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A command is one that Discord offers after a slash.
//
// docs.discord.com/developers/interactions/application-commands, read 2026-11-28: names have
// up to 32 characters, descriptions up to 100, and Bulk Overwrite Global Application Commands
// replaces all of them and returns them with their ids. A command that keeps its name keeps its id.
type command struct {
	ID       string            `json:"id,omitempty"` // Discord gives it
	Name     string            `json:"name"`
	Help     string            `json:"description"`
	Helps    map[string]string `json:"description_localizations,omitempty"`
	Type     int               `json:"type"`
	Contexts []int             `json:"contexts"` // servers, and the direct chat with the bot
	Options  []argument        `json:"options,omitempty"`
}

// An argument is the text after a command.
type argument struct {
	Type     int    `json:"type"`
	Name     string `json:"name"`
	Help     string `json:"description"`
	Required bool   `json:"required"`
}

// withoutText are the commands after which no text counts.
var withoutText = map[string]bool{"help": true, "reset": true, "status": true, "why": true, "tasks": true, "privacy": true, "context": true, "compact": true}

// menuOf are the commands of the bot.
func menuOf() (all []command) {
	for _, m := range connectors.Commands {
		c := command{Name: m.Name, Help: connectors.Cut(m.Help, 99), Type: 1, Contexts: []int{0, 1}, Helps: make(map[string]string)}
		for _, language := range texts.All() {
			if language != texts.English {
				c.Helps[string(language)] = connectors.Cut(texts.Voice{Language: language}.In(m.Help), 99)
			}
		}
		if !withoutText[m.Name] {
			c.Options = []argument{{Type: 3, Name: "text", Help: "…"}}
		}
		all = append(all, c)
	}
	return all
}

// register registers the commands of the bot, if they changed since they last were or their ids are
// unknown.
func (c *Connector) register(ctx context.Context, app *application) {
	all := menuOf()
	text, err := json.Marshal(all)
	if err != nil {
		c.log.Warn("failed to register the commands", "err", err)
		return
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	if last := c.registration(ctx); last.Sum == sum && len(last.IDs) > 0 {
		c.menu.note(last.IDs)
		return
	}
	var now []command
	var refused *refusal
	done := connectors.Retry(ctx, c.log, "failed to register the commands, retrying", func() error {
		err := c.api.do(ctx, call{
			method: http.MethodPut, what: "register commands", path: "/applications/" + app.ID + "/commands", major: app.ID, body: all,
		}, &now)
		if errors.As(err, &refused) {
			return nil
		}
		return err
	})
	if refused != nil {
		c.log.Warn("failed to register the commands", "err", refused)
	}
	if refused != nil || !done {
		return
	}
	r := registration{Sum: sum, IDs: idsOf(now)}
	c.menu.note(r.IDs)
	if err := connectors.WriteMark(ctx, c.cfg.Marks, c.commandsKey(), r); err != nil && ctx.Err() == nil {
		c.log.Warn("failed to save which commands are registered", "err", err)
	}
}
