package main

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/web"
)

// entered makes the change that adds an entry of a kind, if c is one: it refuses a name that the file has already, and
// stores secrets in files of their own, which forget removes.
func (f *configFile) entered(c web.ConfigEdit) (made web.ConfigEdit, forget func(), err error) {
	forget = func() {}
	if c.Kind == "" {
		return c, forget, nil
	}
	secrets, fields, list := make(map[string]string), maps.Clone(c.Fields), ""
	for _, k := range configs.EntryKinds() {
		if k.List && k.Name == c.Kind {
			list = k.Group
		}
		for _, x := range k.Fields {
			v := strings.TrimSpace(fields[x.Name])
			if k.Name == c.Kind && x.Form.Kind == configs.FormSecret && v != "" && !strings.HasPrefix(v, "env:") && !strings.HasPrefix(v, "file:") {
				secrets[x.Name], fields[x.Name] = v, "file:x" // for the check
			}
		}
	}
	key, _, faults := configs.Entry(c.Kind, c.Key, fields)
	if _, has := configs.Written(f.text, key); has && key != list {
		faults["name"] = "the file has " + key + " already"
	}
	for name, text := range secrets {
		if secrets[name], err = oneSecret(text); err != nil {
			faults[name] = err.Error()
		}
	}
	if len(faults) > 0 {
		return c, forget, &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: "Nothing was added.", Fields: faults}
	}
	var undo []func()
	forget = func() {
		for _, u := range undo {
			u()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		reference, u, err := f.keepSecret(key+"."+name, secrets[name])
		if err != nil {
			forget()
			return c, func() {}, err
		}
		fields[name], undo = reference, append(undo, u)
	}
	_, value, _ := configs.Entry(c.Kind, c.Key, fields) // checked above
	c.Key, c.Value, c.Fields = key, &value, fields
	return c, forget, nil
}

// ofEntry says of an error about a new entry which of its fields its lines are about, where they name some.
func ofEntry(c web.ConfigEdit, err error) error {
	var problem *web.Problem
	if c.Kind == "" || !errors.As(err, &problem) || problem.Fields["value"] == "" {
		return err
	}
	lines := strings.Split(problem.Fields["value"], "\n")
	problem.Fields = make(map[string]string)
	for _, why := range lines {
		field := fieldOf(c, why)
		problem.Fields[field] = join("\n", problem.Fields[field], why)
	}
	return problem
}

// fieldOf is the field of a new entry that a line is about; name if it is about none.
func fieldOf(c web.ConfigEdit, line string) string {
	field := "name"
	line = numbered.ReplaceAllString(line, "") // relay[2].url is the key url of relay.crm
	key := c.Key
	if list, _, ok := configs.ListOf(key); ok {
		key = list
	}
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) { // of callback and callback_secret, the longer one
		if strings.Contains(line, key+"."+name) && (field == "name" || len(name) > len(field)) {
			field = name
		}
	}
	return field
}

// numbered is the number of an entry of a list.
var numbered = lazyregexp.New(`\[[0-9]+\]`)

// unplaced is what a warning says, wherever it does: entries move in their list, and lines in the file.
func unplaced(w configs.Warning) string {
	return numbered.ReplaceAllString(w.Key, "[]") + ": " + inLine.ReplaceAllString(w.Text, "in a line")
}

// inLine is where the text of a warning places something else in the file.
var inLine = lazyregexp.New(`in line [0-9]+`)
