package discordtest

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// A Field is an input of a form, as a person sees it.
type Field struct {
	Label, Description string
	Options            []string // of a menu
	Value              string   // what is in it already
	Required           bool
}

// Form returns the fields of the form that is open for a person; none if there is none.
func (s *Server) Form(user string) (fields []Field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.modals[user] == nil {
		return nil
	}
	for _, label := range labels(s.modals[user]) {
		c, _ := label["component"].(answer)
		var f Field
		f.Label, _ = label["label"].(string)
		f.Description, _ = label["description"].(string)
		f.Value, _ = c["value"].(string)
		f.Required = c["required"] != false
		f.Options = optionLabels(c)
		fields = append(fields, f)
	}
	return fields
}

func labels(a *asked) (all []answer) {
	list, _ := a.data["components"].([]any)
	for _, x := range list {
		label, _ := x.(answer)
		all = append(all, label)
	}
	return all
}

func optionLabels(c answer) (all []string) {
	options, _ := c["options"].([]any)
	for _, x := range options {
		o, _ := x.(answer)
		label, _ := o["label"].(string)
		all = append(all, label)
	}
	return all
}

// Submit lets a person submit the form that is open for them, which has one input.
func (s *Server) Submit(user, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.modals[user]
	if a == nil || len(labels(a)) != 1 {
		return fmt.Errorf("no form with one input is open for %s", user)
	}
	name, _ := labels(a)[0]["label"].(string)
	return s.fill(user, map[string][]string{name: {text}})
}

// Fill lets a person submit that form with values by label: the text of an input, the chosen options of
// a menu. An input that is not named keeps what is in it. Discord's app checks what is required, and how
// much. The form stays open until the bot responds.
func (s *Server) Fill(user string, values map[string][]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fill(user, values)
}

func (s *Server) fill(user string, values map[string][]string) error {
	a := s.modals[user]
	if a == nil {
		return fmt.Errorf("no form is open for %s", user)
	}
	var sent []answer
	for i, label := range labels(a) {
		name, _ := label["label"].(string)
		c, _ := label["component"].(answer)
		got, named := values[name]
		filled, err := filled(c, got, named)
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		filled["id"], filled["custom_id"], filled["type"] = 2*i+2, c["custom_id"], c["type"]
		sent = append(sent, answer{"type": 18, "id": 2*i + 1, "component": filled})
	}
	for name := range values {
		if !slices.ContainsFunc(labels(a), func(l answer) bool { return l["label"] == name }) {
			return fmt.Errorf("the form has no %q", name)
		}
	}
	s.interact(a.channel, user, 5, answer{"custom_id": a.data["custom_id"], "components": sent}, s.channels[a.channel].find(a.message))
	return nil
}

// filled is a component as it is submitted.
func filled(c answer, got []string, named bool) (answer, error) {
	if c["type"] == 3.0 {
		return chosen(c, got, named)
	}
	text, _ := c["value"].(string)
	if named {
		if len(got) != 1 {
			return nil, fmt.Errorf("%d texts", len(got))
		}
		text = got[0]
	}
	least, _ := c["min_length"].(float64)
	most, bound := c["max_length"].(float64)
	n := utf8.RuneCountInString(text)
	if c["required"] != false && n == 0 || n < int(least) && n > 0 || bound && n > int(most) {
		return nil, fmt.Errorf("a text of %d characters does not fit", n)
	}
	return answer{"value": text}, nil
}

// chosen is a menu as it is submitted.
func chosen(c answer, got []string, named bool) (answer, error) {
	values := []string{}
	options, _ := c["options"].([]any)
	for _, x := range options {
		o, _ := x.(answer)
		label, _ := o["label"].(string)
		value, _ := o["value"].(string)
		if named && slices.Contains(got, label) || !named && o["default"] == true {
			values = append(values, value)
		}
	}
	least, bound := c["min_values"].(float64)
	if !bound {
		least = 1
	}
	most, bound := c["max_values"].(float64)
	if !bound {
		most = 1
	}
	none := c["required"] == false && len(values) == 0
	if !none && (len(values) < int(least) || len(values) > int(most)) || named && len(values) != len(got) {
		return nil, fmt.Errorf("%q chooses %q of %q", got, values, optionLabels(c))
	}
	return answer{"values": values}, nil
}
