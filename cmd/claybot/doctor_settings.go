package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/texts"
)

// offBy returns the warning about the setting that switches a part off, where Off of the part says why. The setting
// has the finding, and the part has none.
func offBy(c *configs.Config, why string) (configs.Warning, bool) {
	return warningOf(c, func(w configs.Warning) bool { return w.Explains(why) })
}

// unreadSecret returns the warning about a secret that the settings of one of several groups of keys name, and that
// cannot be read. It is the cause where the credential is missing.
func unreadSecret(c *configs.Config, groups ...string) (configs.Warning, bool) {
	return warningOf(c, func(w configs.Warning) bool {
		return w.Code() == configs.CodeMissing && slices.ContainsFunc(groups, w.Concerns)
	})
}

func warningOf(c *configs.Config, is func(configs.Warning) bool) (w configs.Warning, there bool) {
	i := slices.IndexFunc(c.Source.Warnings, is)
	if i < 0 {
		return w, false
	}
	return c.Source.Warnings[i], true
}

// settingOf returns the warning about the setting that is why a connector or a schedule has stopped.
func settingOf(c *configs.Config, x overview.ConnectorStatus) (w configs.Warning, there bool) {
	if x.State != connectors.StateStopped {
		return w, false
	}
	if w, there = offBy(c, offOf(c, x.Name)); there {
		return w, there
	}
	i, _ := c.Connectors.Instance(x.Name)
	if s, hooks := i.(*configs.Webhook); hooks {
		return hookSetting(c, x.Name, s)
	}
	if overview.RefusalCode(x.Refusal) == "credential-missing" {
		return unreadSecret(c, groupsOf(x.Name)...)
	}
	return w, false
}

// hookSetting returns the warning about the secret for which a webhook takes no request.
func hookSetting(c *configs.Config, name string, s *configs.Webhook) (w configs.Warning, there bool) {
	if code, _, _ := hookFault(name, s, ""); code != "webhook-no-secret" {
		return w, false
	}
	return unreadSecret(c, "connectors."+name)
}

// relaySetting returns the warning for which a relay takes no events: that about its entry, or else about the list. There is
// none for a relay that is in force.
func relaySetting(c *configs.Config, relay string) (w configs.Warning, there bool) {
	if slices.ContainsFunc(c.Telemetry.Relay, func(x configs.Relay) bool { return x.Name == relay }) {
		return w, false
	}
	if w, there = warningOf(c, func(w configs.Warning) bool { return !w.Advice() && c.RelayOf(w) == relay }); there {
		return w, there
	}
	return warningOf(c, configs.Warning.OfRelays)
}

// offOf says why a connector or a schedule is off; empty for one that is not.
func offOf(c *configs.Config, name string) string {
	switch name {
	case string(claybot.AgentCron):
		return c.Schedule.Cron.Off()
	case string(claybot.AgentHeartbeat):
		return c.Schedule.Heartbeat.Off()
	}
	return c.Connectors.Off(name)
}

// groupsOf are the groups of keys that may set a connector.
func groupsOf(connector string) []string { return []string{connector, "connectors." + connector} }

// nextFor is the next step for a setting.
func nextFor(w configs.Warning) string { return cmp.Or(w.Next, nextOf(w.Code())) }

// levelOf is how grave a setting is: what is off, or needs a secret that cannot be read, does not work.
func levelOf(code string, off bool) string {
	if off || code == configs.CodeMissing {
		return postgres.LevelProblem
	}
	return postgres.LevelWarning
}

// settingFindings are about the settings that are not as they should be, those first that switch something off.
// Operators read of the first one of these in their chats.
func (d *daemon) settingFindings(l *findingList, st overview.Status) {
	var off, others []overview.SettingStatus
	for _, x := range st.Settings {
		switch {
		case x.Code == "": // those of workflows, which have findings of their own
		case x.Off:
			off = append(off, x)
		default:
			others = append(others, x)
		}
	}
	part := texts.Part{Kind: texts.PartConfiguration}
	if len(off) == 0 {
		l.works("configuration", part)
	} else {
		text := off[0].Text
		if more := len(off) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more; claybot config check lists all)", more)
		}
		l.wrong("configuration", part, overview.LevelProblem, off[0].Code, text, off[0].Next)
		off = off[1:]
	}
	for _, x := range append(off, others...) {
		l.wrong("configuration "+cmp.Or(x.Key, x.Connector, "file"), texts.Part{}, levelOf(x.Code, x.Off), x.Code, x.Text, x.Next)
	}
}
