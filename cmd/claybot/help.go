package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/lazyregexp"
)

// newParser returns the parser of a table of commands. exit gets the code after --help and
// --version.
func newParser(grammar any, out, errs io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(grammar,
		kong.Name("claybot"),
		kong.Description("Connects AI agents to chats and never loses a message."),
		kong.Writers(out, errs),
		kong.Vars{"version": "claybot " + version},
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true}),
		kong.Help(printHelp),
	)
}

// firstHour are the examples of the program itself.
const firstHour = "serve\nchat -m 'What can you do?'\npair approve CODE\nwhy RUN"

// printHelp prints the help of the program or of a command, with its examples.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	at, examples := ctx.Selected(), []string{}
	if at == nil {
		examples = examplesOf(firstHour)
	} else {
		at.Group = nil // its commands stand below no heading of the program
		for _, leaf := range append(at.Leaves(true), at) {
			examples = append(examples, examplesOf(leaf.Tag.Get("eg"))...)
		}
		for _, f := range ctx.Model.Flags { // these are for serve, and for others by exception
			f.Hidden = f.Hidden || f.Group != nil && at.Name != "serve"
		}
	}
	if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
		return err
	}
	text := "\nExamples:\n  " + strings.Join(examples, "\n  ") + "\n"
	if at != nil && at.Name != "serve" {
		text = "\nGlobal flags such as --config and --data-dir: claybot --help\n" + text
	}
	_, err := io.WriteString(ctx.Stdout, text)
	return err
}

// examplesOf returns the command lines of an eg tag.
func examplesOf(eg string) []string {
	var all []string
	for line := range strings.Lines(eg) {
		all = append(all, "claybot "+strings.TrimSuffix(line, "\n"))
	}
	return all
}

// mistake explains an error on the command line: what is wrong, what was probably meant, and
// which help describes it.
func mistake(err error) string {
	var parse *kong.ParseError
	text, path := err.Error(), ""
	if errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
		at := parse.Context.Selected()
		if at == at.Parent.DefaultCmd { // its name was left out
			at = at.Parent
		}
		if word, unknown := strings.CutPrefix(text, "unexpected argument "); unknown && !strings.Contains(word, " ") {
			text += meant(word, at.Children)
		}
		path = " " + at.Path()
	}
	return fmt.Sprintf("%s\nTry: claybot%s --help", text, path)
}

// meant names the command that word was probably meant to be; empty if none is close. The tag also of a
// command has other words for it.
func meant(word string, commands []*kong.Node) string {
	var names []string
	near := ""
	for _, c := range commands {
		names = append(names, c.Name)
		if slices.Contains(strings.Fields(c.Tag.Get("also")), word) {
			near = c.Name
		}
	}
	if near = cmp.Or(near, configs.Nearest(word, names)); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

// negatives marks the negative number that config set gets as a value, which no flag is: -5 to
// kong is a flag.
func negatives(args []string) []string {
	set := slices.Index(args, "set")
	if set < 1 || args[set-1] != "config" || slices.Contains(args, "--") {
		return args
	}
	for i := set + 2; i < len(args); i++ {
		if negative.MatchString(args[i]) && !strings.HasPrefix(args[i-1], "-") {
			return slices.Concat(args[:i], args[i+1:], []string{"--", args[i]})
		}
	}
	return args
}

var negative = lazyregexp.New(`^-\.?[0-9]`)
