package main

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/claybot/claybot/configs"
)

//go:embed completions
var completions embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Run prints the script that completes command lines of claybot in a shell.
func (c completionCmd) Run(e *env) error {
	script, err := completions.ReadFile("completions/claybot." + c.Shell)
	if err != nil {
		return err
	}
	_, err = e.out.Write(script)
	return err
}

// completeCmd is what the scripts call. It reads no configuration and calls no daemon.
type completeCmd struct {
	Words []string `arg:"" optional:"" help:"The words of the command line; the last one is completed."`
}

// Run prints what can stand in place of the last word: a line for each, with its help after
// a tab; :files and :dirs leave it to the shell.
func (c completeCmd) Run(e *env) error {
	p, err := newParser(new(cli), io.Discard, io.Discard, func(int) {})
	if err != nil {
		return err
	}
	if len(c.Words) == 0 {
		return nil
	}
	last := len(c.Words) - 1
	for _, w := range candidates(p.Model.Node, c.Words[:last], c.Words[last]) {
		if strings.HasPrefix(w.text, c.Words[last]) || strings.HasPrefix(w.text, ":") {
			fmt.Fprintf(e.out, "%s\t%s\n", w.text, w.help)
		}
	}
	return nil
}

// A candidate can stand in place of a word.
type candidate struct{ text, help string }

// candidates returns what may follow words; word is what there is of it.
func candidates(at *kong.Node, words []string, word string) []candidate {
	given := 0 // arguments of the command
	var open *kong.Flag
	for i, w := range words {
		switch {
		case open != nil:
			open = nil
		case i == 0 && w == "help":
		case strings.HasPrefix(w, "-"):
			if f := flagOf(at, w); f != nil && !f.IsBool() && !strings.Contains(w, "=") {
				open = f
			}
		default:
			if c := commandOf(at, w); c != nil {
				at = c
			} else {
				given++
			}
		}
	}
	name, _, long := strings.Cut(word, "=")
	switch {
	case open != nil:
		return valuesOf(open.Value, cmp.Or(open.PlaceHolder, open.Name), "")
	case long && strings.HasPrefix(word, "--"):
		if f := flagOf(at, name); f != nil {
			return valuesOf(f.Value, cmp.Or(f.PlaceHolder, f.Name), name+"=")
		}
		return nil
	case strings.HasPrefix(word, "-"):
		return flagsAt(at)
	}
	var all []candidate
	for _, c := range at.Children {
		if given == 0 && !c.Hidden {
			all = append(all, candidate{c.Name, c.Help})
		}
	}
	if at.DefaultCmd != nil {
		at = at.DefaultCmd
	}
	if n := len(at.Positional); n > 0 && (given < n || at.Positional[n-1].IsCumulative()) {
		v := at.Positional[min(given, n-1)]
		all = append(all, valuesOf(v, v.Name, "")...)
	}
	return all
}

// valuesOf returns the values of a flag or an argument, as far as the grammar knows them; name
// says what kind it is.
func valuesOf(v *kong.Value, name, prefix string) []candidate {
	switch strings.ToLower(name) {
	case "file", "copy":
		return []candidate{{text: ":files"}}
	case "dir":
		return []candidate{{text: ":dirs"}}
	}
	if v.Tag.Get("values") == "config keys" {
		return configKeys()
	}
	var all []candidate
	for _, value := range strings.Split(cmp.Or(v.Enum, v.Tag.Get("values")), ",") {
		if value != "" {
			all = append(all, candidate{text: prefix + value})
		}
	}
	return all
}

// configKeys returns the keys of the configuration file that a command can name.
func configKeys() []candidate {
	var all []candidate
	for _, key := range configs.Keys() {
		if !strings.Contains(key, "[]") {
			all = append(all, candidate{key, oneLine(configs.HelpOf(key).Values)})
		}
	}
	return all
}

// flagsOf returns the flags that a command takes, its own last.
func flagsOf(at *kong.Node) []*kong.Flag {
	var all []*kong.Flag
	for n := at; n != nil; n = n.Parent {
		all = append(n.Flags[:len(n.Flags):len(n.Flags)], all...)
	}
	if at.DefaultCmd != nil {
		all = append(all, at.DefaultCmd.Flags...)
	}
	return all
}

func flagsAt(at *kong.Node) []candidate {
	var all []candidate
	for _, f := range flagsOf(at) {
		if !f.Hidden {
			all = append(all, candidate{"--" + f.Name, f.Help})
		}
	}
	return all
}

// flagOf returns the flag that a word names; nil for none.
func flagOf(at *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, f := range flagsOf(at) {
		if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func commandOf(at *kong.Node, name string) *kong.Node {
	for _, c := range at.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}
