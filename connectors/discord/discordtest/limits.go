package discordtest

import "unicode/utf8"

// bodyFits reports whether a message has what Discord takes.
func bodyFits(body answer, files []File, edit bool) bool {
	text, _ := body["content"].(string)
	allowed, _ := body["allowed_mentions"].(answer)
	parse, listed := allowed["parse"].([]any)
	if nonce, ok := body["nonce"].(string); ok && utf8.RuneCountInString(nonce) > 25 {
		return false
	}
	if utf8.RuneCountInString(text) > 2000 || text == "" && len(files) == 0 && !edit || !listed || len(parse) > 0 {
		return false
	}
	rows, _ := body["components"].([]any)
	return rowsFit(rows)
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
				if label, _ := c["label"].(string); label == "" || utf8.RuneCountInString(label) > 80 {
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
	hint, _ := c["placeholder"].(string)
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
	for _, r := range rows {
		line, _ := r.(answer)
		all, _ := line["components"].([]any)
		if len(all) != 1 {
			return false
		}
		c, _ := all[0].(answer)
		label, _ := c["label"].(string)
		hint, _ := c["placeholder"].(string)
		if c["type"] != 4.0 || label == "" || utf8.RuneCountInString(label) > 45 || utf8.RuneCountInString(hint) > 100 {
			return false
		}
	}
	return true
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
