package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type manCmd struct{}

// Run prints the manual page.
func (manCmd) Run(e *env) error {
	p, err := newParser(new(cli), io.Discard, io.Discard, func(int) {})
	if err != nil {
		return err
	}
	_, err = e.out.Write(manual(p.Model))
	return err
}

// manualEnd follows the commands in the manual page.
const manualEnd = `.SH EXIT STATUS
.TP
0
The command succeeded.
.TP
1
It failed; standard error says why.
.TP
2
The command line has a mistake.
.TP
3
The configuration or the data directory does not allow a start.
.TP
4
Another process holds the data directory.
.TP
5
The database is damaged.
.TP
130
Ctrl\-C ended the command.
.SH FILES
.TP
.I claybot.yaml
Configuration, optional; in the working directory, or where \-\-config or CLAYBOT_CONFIG says.
.TP
.I .claybot
Data directory, unless \-\-data\-dir, CLAYBOT_DATA_DIR or the configuration says otherwise.
`

// manual returns the manual page of the program in the format of man(7).
func manual(app *kong.Application) []byte {
	b := new(bytes.Buffer)
	fmt.Fprintf(b, ".TH CLAYBOT 1 \"\" \"claybot %s\" \"claybot Manual\"\n", roff(version))
	fmt.Fprintf(b, ".SH NAME\nclaybot \\- %s\n", roff(strings.TrimSuffix(app.Help, ".")))
	b.WriteString(".SH SYNOPSIS\n.B claybot\n.I command\n[\\fIflags\\fR]\n.SH COMMANDS\n")
	group := ""
	for _, leaf := range app.Leaves(true) {
		if title := leaf.ClosestGroup().Title; title != group {
			group = title
			fmt.Fprintf(b, ".SS %s\n", roff(strings.TrimSuffix(title, ":")))
		}
		fmt.Fprintf(b, ".TP\n.B claybot %s\n%s\n.RS\n", roff(leaf.Summary()), roff(leaf.Help))
		for _, v := range leaf.Positional {
			option(b, v.Summary(), v.Help)
		}
		for n := leaf; n.Parent != nil; n = n.Parent {
			manualFlags(b, n.Flags)
		}
		b.WriteString(".PP\n.nf\n")
		for _, line := range examplesOf(leaf.Tag.Get("eg")) {
			fmt.Fprintf(b, "\\&  $ %s\n", roff(line))
		}
		b.WriteString(".fi\n.RE\n")
	}
	b.WriteString(".SH GLOBAL FLAGS\n")
	manualFlags(b, app.Flags)
	b.WriteString(manualEnd)
	return b.Bytes()
}

func manualFlags(b *bytes.Buffer, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := f.Summary()
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		option(b, name, f.Help)
	}
}

func option(b *bytes.Buffer, name, help string) {
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(help))
}

// roff protects what the format would obey.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, `"`, `\(dq`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
