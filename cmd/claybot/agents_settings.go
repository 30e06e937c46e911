package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

type (
	agentsSetCmd struct {
		ID    claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
		Key   string          `arg:"" help:"Setting: model, prompt, maxSteps, debounceMs, whenBusy, processBuffer, tools, engine, approved or permissions."`
		Value string          `arg:"" help:"Value: a word, a number, or JSON for a list or a group."`
	}
	agentsUnsetCmd struct {
		ID  claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
		Key string          `arg:"" help:"Setting, as with set."`
	}
)

// Run changes a setting of an agent.
func (c agentsSetCmd) Run(e *env) error {
	if err := settingNamed(c.Key); err != nil {
		return err
	}
	return e.changeAgent(c.ID, c.Key, settingJSON(c.Key, c.Value))
}

// Run resets a setting of an agent.
func (c agentsUnsetCmd) Run(e *env) error {
	if err := settingNamed(c.Key); err != nil {
		return err
	}
	return e.changeAgent(c.ID, c.Key, json.RawMessage("null"))
}

// settingNamed refuses a name that no setting of an agent has.
func settingNamed(key string) error {
	names := web.SettingNames()
	if slices.Contains(names, key) {
		return nil
	}
	text := fmt.Sprintf("agents have no setting %q; the settings are %s", key, strings.Join(names, ", "))
	if near := configs.Nearest(key, names); near != "" {
		text = fmt.Sprintf("agents have no setting %q; did you mean %s?", key, near)
	}
	return usageError{errors.New(text)}
}

// settingJSON is the value of a setting as JSON. What is none is a text, as is the value of a setting that
// is a text.
func settingJSON(key, value string) json.RawMessage {
	textual := slices.Contains([]string{"model", "prompt", "whenBusy", "processBuffer", "engine"}, key)
	if !textual && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	b, _ := json.Marshal(value) // a text always can be
	return b
}

// changeAgent changes one setting of an agent, and says what it is now, what it was, and how to undo that.
func (e *env) changeAgent(id claybot.AgentID, key string, value json.RawMessage) error {
	settings := at(agentPath(id, "settings"))
	before, err := ask[web.SettingsView](e, "GET", settings, nil)
	if err != nil {
		return err
	}
	return reply(e, "PATCH", settings, map[string]json.RawMessage{key: value}, func(v web.SettingsView) string {
		of := func(v web.SettingsView) string {
			if own, set := ownSettings(v.Own)[key]; set {
				return own
			}
			return "that of the profile " + v.Profile
		}
		was, now := of(before), of(v)
		if was == now {
			return fmt.Sprintf("%s of %s is %s already.\n", key, id, now)
		}
		return fmt.Sprintf("%s of %s is %s.\nIt was %s; undo: %s\n", key, id, now, was, undoSetting(id, key, before.Own))
	})
}

// undoSetting is the command that gives a setting of an agent the value that it has in own.
func undoSetting(id claybot.AgentID, key string, own claybot.Settings) string {
	unset := fmt.Sprintf("claybot agents unset %s %s", id, key)
	was, set := ownSettings(own)[key]
	word := nodes.ShellWord(was)
	if strings.HasPrefix(was, "-") { // which else is an option
		word = "-- " + word
	}
	switch command := fmt.Sprintf("claybot agents set %s %s %s", id, key, word); {
	case !set:
		return unset
	case key == "permissions": // what set leaves out stays
		return unset + " && " + command
	default:
		return command
	}
}

// ownSettings are the settings that an agent has of its own, as people read them, by name. What the daemon
// keeps about them is left out.
func ownSettings(own claybot.Settings) map[string]string {
	var all map[string]json.RawMessage
	b, _ := json.Marshal(own) // it always can be
	_ = json.Unmarshal(b, &all)
	shown := make(map[string]string)
	for name, v := range all {
		if name == "approvedBy" || name == "modelChoice" {
			continue
		}
		if word := ""; json.Unmarshal(v, &word) == nil {
			shown[name] = word
			continue
		}
		shown[name] = string(v)
	}
	return shown
}

// ownRows are the settings that an agent has of its own.
func ownRows(own claybot.Settings) (rows [][]string) {
	all := ownSettings(own)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, []string{[]string{"own settings", ""}[min(i, 1)], oneLine(name + ": " + strings.TrimSpace(all[name]))})
	}
	return rows
}
