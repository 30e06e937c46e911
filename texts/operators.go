package texts

import (
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// Why a connector has stopped: the end of a sentence.
const (
	StoppedToken      = "its token is refused"
	StoppedNoToken    = "its token is missing or not valid"
	StoppedSocketMode = "Socket Mode is switched off for its app"
	StoppedRemoved    = "its app was removed from the workspace"
	StoppedIntents    = "an intent that it needs is switched off for its app"
)

// ConnectorStopped tells an operator that a connector has stopped; why is one of the reasons
// above, or empty. The log and the doctor have the error itself.
func (v Voice) ConnectorStopped(name, why string) string {
	name = connectors.Capital(name)
	if why == "" {
		return v.Say("%s has stopped, so nothing is received or sent there. `claybot doctor` says why, and what to do.", name)
	}
	return v.Say("%s has stopped, so nothing is received or sent there: %s. `claybot doctor` says what to do.", name, v.In(why))
}

// ConnectorWorks tells an operator that a connector which had stopped works again.
func (v Voice) ConnectorWorks(name string) string {
	return v.Say("%s works again.", connectors.Capital(name))
}

// RepliesLost tells an operator that replies were given up.
func (v Voice) RepliesLost(n int) string {
	return v.Count(int64(n), "I couldn't deliver %d reply.|I couldn't deliver %d replies.") + " " +
		v.Say("`claybot outbox list --state failed` shows what failed and why, and `claybot outbox retry` sends it again.")
}

// RoutesDead tells an operator that groups, by the name of their connector, and scheduled tasks
// can't be reached any more.
func (v Voice) RoutesDead(groups map[string]int, tasks []string) string {
	var all []string
	for _, connector := range slices.Sorted(maps.Keys(groups)) {
		all = append(all, v.Count(int64(groups[connector]), "I can't write to %d group on %s any more.|I can't write to %d groups on %s any more.", connectors.Capital(connector)))
	}
	for _, name := range tasks {
		all = append(all, v.Say("The scheduled task “%s” can't reach its chat any more.", connectors.Literal(name, 80)))
	}
	return strings.Join(append(all, v.Say("`claybot status` lists the routes and why.")), " ")
}

// ChatsRenamed tells an operator that the configuration names chats by ids that they have no more;
// each of them is the old name, a space, and the new one.
func (v Voice) ChatsRenamed(chats []string) string {
	var all []string
	for _, x := range chats {
		was, now, _ := strings.Cut(x, " ")
		all = append(all, v.Say("The configuration names %s, which is now %s.", connectors.Literal(was, 80), connectors.Literal(now, 80)))
	}
	return strings.Join(append(all, v.Say("Its settings hold for the new name as well. Please change the name in the configuration.")), " ")
}

// BudgetsSpent tells an operator that budgets stop runs of people or tasks.
func (v Voice) BudgetsSpent(n int) string {
	return v.Count(int64(n), "%d budget is used up and stops work.|%d budgets are used up and stop work.") + " " +
		v.Say("`claybot budgets list` shows which, and `claybot budgets extend` raises one.")
}

// StoreFilled tells an operator that the disk was found full at a time; it is told once there is
// room.
func (v Voice) StoreFilled(at claybot.Time) string {
	return v.Say("The disk with my data was full or read-only from %s on, so I couldn't store messages for a while. Most of them wait at their platforms and come again. Please keep more room: `claybot status` shows how much is left.", v.Moment(at))
}

// GapOperators tells an operator that messages of all chats of a connector may be missing.
func (v Voice) GapOperators(m connectors.Missed) string {
	name := connectors.Capital(m.Connector)
	if m.Assumed {
		return v.Say("My clock was wrong, so I don't know how long I couldn't reach %s before %s. Messages sent there before then may be missing. I told the people who wrote lately.", name, v.Moment(claybot.At(m.To)))
	}
	return v.Say("I couldn't reach %s from %s to %s. Messages sent there during that time may be missing. I told the people who wrote lately.", name, v.Moment(claybot.At(m.From)), v.Moment(claybot.At(m.To)))
}
