package service

import (
	"encoding/xml"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Label is the name of the agent of launchd.
const Label = "io.github.claybot"

// Launchd returns the property list of an agent: launchd.plist(5). It has the variables,
// for launchd knows no file of them, so it must be readable for its user alone. launchd
// starts claybot at login and after a crash. Its log is LaunchdLog.
func (s Service) Launchd() string {
	var b strings.Builder
	text := func(indent, tag, value string) {
		b.WriteString(indent + "<" + tag + ">")
		_ = xml.EscapeText(&b, []byte(value)) // a builder does not fail
		b.WriteString("</" + tag + ">\n")
	}
	key := func(name string) { text("\t", "key", name) }
	b.WriteString(xml.Header)
	b.WriteString(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n")
	b.WriteString("<plist version=\"1.0\">\n<dict>\n")
	key("Label")
	text("\t", "string", Label)
	key("ProgramArguments")
	b.WriteString("\t<array>\n")
	for _, a := range append([]string{s.Program}, s.Args...) {
		text("\t\t", "string", a)
	}
	b.WriteString("\t</array>\n")
	key("WorkingDirectory")
	text("\t", "string", s.Dir)
	key("EnvironmentVariables")
	b.WriteString("\t<dict>\n")
	env := maps.Clone(s.Env)
	if env == nil {
		env = make(map[string]string)
	}
	env["PATH"] = s.Path
	for _, name := range slices.Sorted(maps.Keys(env)) {
		text("\t\t", "key", name)
		text("\t\t", "string", env[name])
	}
	b.WriteString("\t</dict>\n")
	key("RunAtLoad")
	b.WriteString("\t<true/>\n")
	key("KeepAlive")
	b.WriteString("\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n")
	key("StandardErrorPath")
	text("\t", "string", s.LaunchdLog())
	key("Umask")
	fmt.Fprintf(&b, "\t<integer>%d</integer>\n", 0o077)
	key("ExitTimeOut")
	b.WriteString("\t<integer>45</integer>\n")
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// LaunchdLog is the path of the log, as launchd has no journal.
func (s Service) LaunchdLog() string { return filepath.Join(s.Data, "service.log") }
