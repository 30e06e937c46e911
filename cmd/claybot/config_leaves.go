package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claybot/claybot/configs"
)

// leavesBehind warns of changes with which claybot, agents or people no longer find what they have stored.
func leavesBehind(before, after configs.Config) (all []configs.Warning) {
	warn := func(key, text, next string) { all = append(all, configs.Warning{Key: key, Text: text, Next: next}) }
	if was, now := before.DataDir, after.DataDir; was != now && !blankDir(was) {
		next := fmt.Sprintf("to take it along: claybot --data-dir %s stop, then: mv %s %s, and start claybot again; to stay with %s: claybot config revert", was, was, now, was)
		if _, err := os.Lstat(now); !errors.Is(err, fs.ErrNotExist) {
			next = fmt.Sprintf("to stay with %s: claybot config revert", was)
		}
		warn("data_dir", fmt.Sprintf("claybot will start with what %s has: agents, conversations, tasks, tokens and access that are in %s stay there, and it does not find them; a claybot that still runs on %s is reached with --data-dir %s", now, was, was, was), next)
	}
	if was, now := before.Storage, after.Storage; was.Shared() != now.Shared() || was.URL.Value() != now.URL.Value() {
		next := "to take it along: claybot config revert, stop claybot, claybot export FOLDER, set storage.url again, claybot import FOLDER"
		if !was.Shared() {
			next = "to take it along: stop claybot, then: claybot import " + before.DataDir
		}
		if was.Shared() || !blankDir(before.DataDir) {
			warn("storage.url", "claybot will start with what the other store has: agents, conversations, tasks, tokens and access of the one so far stay there, and it does not find them", next)
		}
	}
	if was, now := before.Storage.Files, after.Storage.Files; before.Storage.Shared() && after.Storage.Shared() && (was.Bucket != now.Bucket || was.Prefix != now.Prefix || was.Endpoint != now.Endpoint) {
		warn("files.url", "claybot will look for all files at the new place: those stored so far stay where they are, and it does not find them", "move them before claybot starts again, see docs/files.md; or: claybot config revert")
	}
	if was, now := before.Model, after.Model; !was.Demo() && !now.Demo() && hostOf(was) != hostOf(now) && unsetKey(after, "model.base_url") {
		warn("model.base_url", fmt.Sprintf("what agents read and write goes to %s, where it went to %s", hostOf(now), hostOf(was)), "to stay with "+hostOf(was)+": claybot config revert")
	}
	if !before.Storage.Shared() && blankDir(before.DataDir) { // as during setup
		return all
	}
	if was, now := before.Tools.Workspace, after.Tools.Workspace; was.Provider != now.Provider || was.Per != now.Per {
		key := "workspaces.per"
		if was.Provider != now.Provider {
			key = "workspaces.provider"
		}
		warn(key, "agents get other workspaces: they do not find the files of those so far, which stay until workspaces.ttl has passed", "to go on with those so far: claybot config revert")
	}
	if before.Sessions.Threads != after.Sessions.Threads {
		warn("sessions.threads", movedPeople("thread", "threads", after.Sessions.Threads), "to go on as so far: claybot config revert")
	}
	if before.Sessions.Group != after.Sessions.Group {
		warn("sessions.group", movedPeople("member of a group", "single members", after.Sessions.Group), "to go on as so far: claybot config revert")
	}
	return all
}

// unsetKey reports whether nothing sets a key.
func unsetKey(c configs.Config, key string) bool {
	all := c.Value(key)
	return len(all) == 1 && all[0].Origin == configs.OriginDefault
}

// movedPeople says what becomes of conversations when each of some gets its own, or all get one.
func movedPeople(each, of, now string) string {
	if now == configs.ThreadsShared {
		return "from the next message on, all share one conversation: those of " + of + " stay stored, and get no more messages"
	}
	return "from the next message on, each " + each + " has a conversation of its own, which begins empty where there was none; the shared one stays stored"
}

// blankDir reports whether nothing is stored in a data directory.
func blankDir(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "claybot.db"))
	return errors.Is(err, fs.ErrNotExist)
}
