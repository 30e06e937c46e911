package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

// onMachine refuses a change over the network.
func onMachine(key, why string) error {
	return &web.Problem{
		Status: http.StatusForbidden, Code: "local", Message: why + ": change this on the machine.",
		Fix: "Run on the machine of claybot: claybot config set " + key + " VALUE", Fields: map[string]string{"value": why + ": change this on the machine."},
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
