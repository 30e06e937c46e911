package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

// onMachine refuses a change over the network of a key, which may have its value behind it.
func onMachine(key, why string) error {
	command := "claybot config set " + key
	if !strings.Contains(key, " ") { // else with the value
		command += " VALUE"
	}
	return &web.Problem{
		Status: http.StatusForbidden, Code: "local", Message: why + ": change this on the machine.",
		Fix: "Run on the machine of claybot: " + command, Fields: map[string]string{"value": why + ": change this on the machine."},
	}
}

// remote refuses what a token over the network may not change: where secrets and texts go, what
// runs on the machine, who decides for the owner, what needs no decision, and which files and variables are read as secrets.
func (f *configFile) remote(next []byte) error {
	key, err := configs.LocalChange(f.text, next)
	if err != nil {
		return configError{err}
	}
	if key != "" {
		return onMachine(key, key+" cannot be changed over the network")
	}
	if f.opens(next) && !f.opens(f.text) {
		return onMachine("access.mode open", "Access cannot be opened to everyone over the network")
	}
	return f.references(next)
}

// here refuses what a browser on the machine may not change in an entry, since its cookie is no more than that: what
// runs as a process of the machine, or writes a file there, and which files and variables are read as secrets.
func (f *configFile) here(e *env, next []byte) error {
	before, _, err := f.load(e, f.text)
	if err != nil {
		return configError{err}
	}
	after, _, err := f.load(e, next)
	if err != nil {
		return configError{err}
	}
	for _, s := range after.Tools.MCP {
		same := func(x configs.MCPServer) bool {
			return x.Process.Where == s.Process.Where && slices.Equal(x.Process.Command, s.Process.Command)
		}
		if s.Process.Where == configs.MCPHost && !slices.ContainsFunc(before.Tools.MCP, same) {
			return onMachine("mcp."+s.Name, "A program that runs on the machine itself cannot be added on the page")
		}
	}
	for _, s := range after.Telemetry.Relay {
		if s.File != "" && !slices.ContainsFunc(before.Telemetry.Relay, func(x configs.Relay) bool { return x.File == s.File }) {
			return onMachine("relay."+s.Name, "A relay that writes a file cannot be added on the page")
		}
	}
	return f.references(next)
}

// references refuses secrets that another file or variable of the machine holds than before.
func (f *configFile) references(next []byte) error {
	all, err := configs.NewReferences(f.text, next)
	if err != nil {
		return configError{err}
	}
	for _, r := range all {
		path, isFile := strings.CutPrefix(r.Text, "file:")
		if isFile && !f.keeps(path) {
			return onMachine(r.Key, "Over the network, a key can only refer to a secret that claybot has stored beside the file")
		}
		if !isFile && !r.Own {
			return onMachine(r.Key, "Over the network, a key can only refer to a variable that the file names already")
		}
	}
	return nil
}

// opens reports whether a text of the file lets everyone write to agents.
func (f *configFile) opens(text []byte) bool {
	c, _, err := configs.LoadText(f.named, text, func(string) (string, bool) { return "", false })
	return err == nil && c.Access.Mode == configs.AccessOpen
}

// keeps reports whether a path is that of a secret that claybot has stored beside the file.
func (f *configFile) keeps(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.named), path)
	}
	if filepath.Dir(path) != filepath.Join(filepath.Dir(f.named), f.secretsName()) {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
