package telegramtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Command is one entry of the bot's menu.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// Limits of menus (https://core.telegram.org/bots/api#setmycommands and #botcommand, as of
// 2026-11-28).
const (
	maxCommands    = 100
	maxCommand     = 32
	maxDescription = 256 // characters
)

// scopeTypes are the types of https://core.telegram.org/bots/api#botcommandscope, as of
// 2026-11-28; true for those of one chat.
var scopeTypes = map[string]bool{
	"default": false, "all_private_chats": false, "all_group_chats": false, "all_chat_administrators": false,
	"chat": true, "chat_administrators": true, "chat_member": true,
}

// menuParams are the parameters of setMyCommands, getMyCommands and deleteMyCommands.
type menuParams struct {
	Commands []Command `json:"commands"`
	Language string    `json:"language_code"`
	Scope    *struct {
		Type   string  `json:"type"`
		ChatID integer `json:"chat_id"`
		UserID integer `json:"user_id"`
	} `json:"scope"`
}

// menu returns the key of a menu. The lock is held.
func (s *Server) menu(c *call) (p menuParams, key string, e *apiError) {
	if err := json.Unmarshal(c.params, &p); err != nil {
		return p, "", badParams(err)
	}
	key = "default"
	if p.Scope != nil {
		ofChat, known := scopeTypes[p.Scope.Type]
		switch {
		case !known:
			return p, "", badRequest("can't parse BotCommandScope: unsupported type specified")
		case ofChat && s.chats[int64(p.Scope.ChatID)] == nil:
			return p, "", badRequest("chat not found")
		}
		if key = p.Scope.Type; ofChat {
			key += " " + strconv.FormatInt(int64(p.Scope.ChatID), 10)
		}
	}
	if p.Language != "" && len(p.Language) != 2 {
		return p, "", badRequest("invalid language code specified")
	}
	return p, key + "/" + p.Language, nil
}

func (s *Server) setCommands(c *call) ([]byte, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, key, e := s.menu(c)
	if e != nil {
		return nil, e
	}
	if len(p.Commands) > maxCommands {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, m := range p.Commands {
		if len(m.Command) < 1 || len(m.Command) > maxCommand || strings.Trim(m.Command, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if m.Description == "" || utf8.RuneCountInString(m.Description) > maxDescription {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	if s.menus == nil {
		s.menus = make(map[string][]Command)
	}
	s.menus[key] = p.Commands
	s.touch()
	return []byte("true"), nil
}

func (s *Server) deleteCommands(c *call) ([]byte, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, key, e := s.menu(c)
	if e != nil {
		return nil, e
	}
	delete(s.menus, key)
	s.touch()
	return []byte("true"), nil
}

func (s *Server) getCommands(c *call) ([]byte, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, key, e := s.menu(c)
	if e != nil {
		return nil, e
	}
	return mustJSON(append([]Command{}, s.menus[key]...)), nil
}

// Commands returns the menu of chats and languages that have no other.
func (s *Server) Commands() []Command { return s.CommandsIn("") }

// CommandsIn is the menu of people with a language, in chats that have no other.
func (s *Server) CommandsIn(language string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.menus["default/"+language])
}

// MenuOf returns the menu that a person with a language sees in a chat, by the algorithm of
// https://core.telegram.org/bots/api#determining-list-of-commands, as of 2026-11-28.
func (s *Server) MenuOf(chat int64, administrator bool, language string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strconv.FormatInt(chat, 10)
	scopes := []string{"chat " + id, "all_private_chats", "default"}
	if chat < 0 {
		scopes = []string{"chat " + id, "all_group_chats", "default"}
		if administrator {
			scopes = append([]string{"chat_administrators " + id, "all_chat_administrators"}, scopes...)
		}
	}
	for _, scope := range scopes {
		for _, l := range []string{language, ""} {
			if menu, set := s.menus[scope+"/"+l]; set {
				return slices.Clone(menu)
			}
		}
	}
	return nil
}
