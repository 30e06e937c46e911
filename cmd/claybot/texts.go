package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claybot/claybot/texts"
)

type textsCmd struct {
	Word     string `arg:"" optional:"" help:"List only texts that contain it, or whose ids do."`
	Language string `placeholder:"CODE" values:"en,de" help:"Language of the texts: en or de. Default: the setting language."`
}

// Run lists the texts as they are said, in the form of the setting texts.
func (c textsCmd) Run(e *env) error {
	config, _, err := e.load()
	if err != nil {
		return err
	}
	v := texts.Voice{Language: texts.Language(config.Language), Replaced: config.Texts.By()}
	if c.Language != "" {
		l, ok := texts.LanguageOf(c.Language)
		if !ok {
			return usageError{fmt.Errorf("--language: %q is not a language of claybot: %s", c.Language, texts.Languages())}
		}
		v.Language = l
	}
	var b strings.Builder
	for _, id := range texts.IDs() {
		if text := v.ByID(id); strings.Contains(strings.ToLower(id+"\n"+text), strings.ToLower(c.Word)) {
			b.WriteString(id + ": " + strconv.Quote(text) + "\n")
		}
	}
	if b.Len() == 0 {
		return fmt.Errorf("no text contains %q", c.Word)
	}
	return e.text(b.String())
}
