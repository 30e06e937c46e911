package discordtest

import (
	"maps"
	"unicode/utf8"
)

// The flags of messages that apps may set.
const settable = 1<<2 | 1<<12 | 1<<13 | 1<<15

// bodyFits reports whether a message has what Discord takes. Mentions must be ruled out, as claybot
// does.
func bodyFits(body answer, files []File, edit bool) bool {
	text, _ := body["content"].(string)
	allowed, _ := body["allowed_mentions"].(answer)
	parse, listed := allowed["parse"].([]any)
	flags, _ := body["flags"].(float64)
	if nonce, ok := body["nonce"].(string); ok && utf8.RuneCountInString(nonce) > 25 || int(flags)&^settable != 0 || !embedsFit(body) {
		return false
	}
	if utf8.RuneCountInString(text) > 2000 || text == "" && len(files) == 0 && !edit || !listed || len(parse) > 0 {
		return false
	}
	rows, _ := body["components"].([]any)
	return rowsFit(rows)
}

// filesFit reports whether the files of a message are small enough for a server without boosts:
// docs.discord.com/developers/reference, Uploading Files, and resources/message, Create Message,
// read 2026-11-28.
func filesFit(files []File) bool {
	sum := 0
	for _, f := range files {
		if sum += len(f.Data); len(f.Data) > 10<<20 {
			return false
		}
	}
	return sum <= 25<<20 && len(files) <= 10
}

// embedsFit reports whether a message has up to ten embeds with up to 6,000 characters:
// docs.discord.com/developers/resources/message, Embed Limits, read 2026-11-28.
func embedsFit(body answer) bool {
	all, _ := body["embeds"].([]any)
	sum := 0
	for _, x := range all {
		e, _ := x.(answer)
		title, _ := e["title"].(string)
		text, _ := e["description"].(string)
		if utf8.RuneCountInString(title) > 256 || utf8.RuneCountInString(text) > 4096 {
			return false
		}
		sum += utf8.RuneCountInString(title) + utf8.RuneCountInString(text)
	}
	return len(all) <= 10 && sum <= 6000
}

// rowsFit reports whether the components of a message are valid.
func rowsFit(rows []any) bool {
	if len(rows) > 5 {
		return false
	}
	seen := make(map[any]bool)
	for _, r := range rows {
		line, _ := r.(answer)
		all, _ := line["components"].([]any)
		if line["type"] != 1.0 || len(all) == 0 || len(all) > 5 {
			return false
		}
		for _, x := range all {
			c, _ := x.(answer)
			id, _ := c["custom_id"].(string)
			if n := utf8.RuneCountInString(id); n == 0 || n > 100 || seen[id] {
				return false
			}
			seen[id] = true
			switch c["type"] {
			case 2.0:
				style, _ := c["style"].(float64)
				if label, _ := c["label"].(string); label == "" || utf8.RuneCountInString(label) > 80 || style < 1 || style > 4 {
					return false
				}
			case 3.0:
				if len(all) != 1 || !optionsFit(c) {
					return false
				}
			default:
				return false
			}
		}
	}
	return true
}

func optionsFit(c answer) bool {
	options, _ := c["options"].([]any)
	seen := make(map[string]bool)
	for _, x := range options {
		o, _ := x.(answer)
		label, _ := o["label"].(string)
		value, _ := o["value"].(string)
		if label == "" || value == "" || utf8.RuneCountInString(label) > 100 || utf8.RuneCountInString(value) > 100 || seen[value] {
			return false
		}
		seen[value] = true
	}
	most, named := c["max_values"].(float64)
	least, bound := c["min_values"].(float64)
	hint, _ := c["placeholder"].(string)
	optional := c["required"] == false // of a form
	if bound && (least < 1 && !optional || least < 0 || int(least) > len(options) || named && least > most) {
		return false
	}
	return len(options) > 0 && len(options) <= 25 && (!named || most >= 1 && int(most) <= len(options)) && utf8.RuneCountInString(hint) <= 150
}

// formFits reports whether a form is valid.
func formFits(data answer) bool {
	id, _ := data["custom_id"].(string)
	title, _ := data["title"].(string)
	rows, _ := data["components"].([]any)
	if id == "" || utf8.RuneCountInString(id) > 100 || title == "" || utf8.RuneCountInString(title) > 45 || len(rows) == 0 || len(rows) > 5 {
		return false
	}
	seen := make(map[string]bool)
	for _, x := range rows {
		label, _ := x.(answer)
		text, _ := label["label"].(string)
		more, _ := label["description"].(string)
		c, _ := label["component"].(answer)
		id, _ := c["custom_id"].(string)
		if label["type"] != 18.0 || text == "" || utf8.RuneCountInString(text) > 45 || utf8.RuneCountInString(more) > 100 ||
			id == "" || utf8.RuneCountInString(id) > 100 || seen[id] || !inputFits(c) {
			return false
		}
		seen[id] = true
	}
	return true
}

// inputFits reports whether a label of a form may have a component: a text input or a menu, of those
// that Discord has. docs.discord.com/developers/components/reference#label, read 2026-11-30.
func inputFits(c answer) bool {
	if c["type"] == 3.0 {
		return optionsFit(c)
	}
	hint, _ := c["placeholder"].(string)
	style, _ := c["style"].(float64)
	value, _ := c["value"].(string)
	least, _ := c["min_length"].(float64)
	most, named := c["max_length"].(float64)
	if style != 1 && style != 2 || named && (most < 1 || most > 4000 || least > most) || least < 0 || least > 4000 {
		return false
	}
	_, labeled := c["label"]
	return c["type"] == 4.0 && !labeled && utf8.RuneCountInString(hint) <= 100 && utf8.RuneCountInString(value) <= 4000
}

// register replaces the commands of the bot. Each has an id; a name that stays keeps its own. What
// Discord adds besides is left out.
func (s *Server) register(all []any) {
	ids := make(map[any]any)
	for _, x := range s.commands {
		c, _ := x.(answer)
		ids[c["name"]] = c["id"]
	}
	s.commands = nil
	for _, x := range all {
		c, _ := x.(answer)
		kept := maps.Clone(c)
		if kept["id"] = ids[c["name"]]; kept["id"] == nil {
			kept["id"] = s.id()
		}
		kept["application_id"], kept["version"] = s.cfg.Bot, s.id()
		s.commands = append(s.commands, kept)
	}
	s.puts++
}

// CommandID returns the id of a command; empty if it is not registered.
func (s *Server) CommandID(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.commands {
		if c, _ := x.(answer); c["name"] == name {
			id, _ := c["id"].(string)
			return id
		}
	}
	return ""
}

// commandsFit reports whether all commands are valid.
func commandsFit(all []any) bool {
	seen := make(map[any]bool)
	for _, x := range all {
		c, _ := x.(answer)
		name, _ := c["name"].(string)
		help, _ := c["description"].(string)
		if name == "" || utf8.RuneCountInString(name) > 32 || help == "" || utf8.RuneCountInString(help) > 100 || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(all) > 0 && len(all) <= 100
}
