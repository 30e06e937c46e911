package configs

import (
	"fmt"
	"maps"

	"go.yaml.in/yaml/v3"
)

// Texts are texts of the operator in place of those of the catalogue, by their ids; see
// package texts, whose languages these are.
type Texts struct {
	English map[string]string `key:"en" kind:"own texts"`
	German  map[string]string `key:"de" kind:"own texts"`

	written []ownText // in the order of the file
}

// An ownText is where a text was written.
type ownText struct {
	item
	language string
}

// By returns the texts by language and id.
func (t Texts) By() map[string]map[string]string {
	return map[string]map[string]string{"en": t.English, "de": t.German}
}

func setTexts(r *reader, at place, n *yaml.Node, texts *map[string]string) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want ids of texts with their texts, found %s; ignored", kindOf(n))
		return
	}
	*texts = make(map[string]string)
	for m := range r.members(at, n) {
		if text, ok := r.scalar(m.at, m.value); ok {
			(*texts)[m.name] = text
			r.texts = append(r.texts, ownText{item{m.at, m.name}, lastName(at.path)})
		}
	}
}

// WrongTexts takes the texts away that have a fault, and warns of them. known returns the ids of all texts.
func (c *Config) WrongTexts(known func() []string, fault func(language, id, text string) error) []Warning {
	if len(c.Texts.written) == 0 {
		return nil // to list the ids takes a tenth of a start
	}
	var all []Warning
	by := c.Texts.By()
	for language, texts := range by {
		by[language] = maps.Clone(texts)
	}
	for _, it := range c.Texts.written {
		err := fault(it.language, it.text, by[it.language][it.text])
		if err == nil {
			continue
		}
		delete(by[it.language], it.text)
		all = append(all, Warning{
			File: it.at.file, Line: it.at.line, Key: it.at.key, Near: unlike(it.text, Nearest(it.text, known())),
			Text: fmt.Sprintf("%v; ignored", err), Next: "correct it; `claybot texts` lists all texts with their ids",
		})
	}
	c.Texts.English, c.Texts.German = by["en"], by["de"]
	return all
}

// unlike is a name unless it is the same as another one.
func unlike(name, near string) string {
	if name == near {
		return ""
	}
	return near
}
