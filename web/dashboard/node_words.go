package dashboard

import (
	"net/url"

	"github.com/claybot/claybot/nodes"
)

// What the map and the pages of nodes say.
const (
	nodeAddTitle = "Add a node"
	nodeBusy     = "messages flow"
	nodeFlowing  = "messages flow from %s to %s"
	nodeNone     = "No node is called %s."
	nodeNoKind   = "Entries of the kind %s cannot be added here."
	nodeNoneFix  = "It may have been removed from the configuration. The map shows all nodes."

	nodeSetAway = "Set by %s: remove it there, on the machine of claybot, and restart claybot."

	nodeRemoveRelay = "Events that wait for it are forgotten."
	nodeRemoveUndo  = "The history of the settings undoes it."
	nodeRemoveFinal = "This cannot be undone: %s has a secret, such as an address, which the history does not keep."

	nodeNoKindFix = "Choose one from the list. What names an address or a path is added on the machine of claybot."
)

// kindWords says what an entry of a kind is.
var kindWords = map[string]string{
	"telegram": "a Telegram bot", "slack": "a Slack app", "discord": "a Discord bot", "webhook": "an address that programs send events to",
	"mcp": "an MCP server, whose tools agents get", "profile": "how some agents behave: their model, tools and memory",
	"fallback": "a model that is asked when the ones before it fail", "search": "a search engine for web_search",
	"budget": "a limit of what is spent", "relay": "a URL or file that gets every event",
}

// elsewhere are the parts that are not added as entries: a key of the configuration switches them, or a page has them.
var elsewhere = []struct{ Name, About, Key, URL string }{
	{"model", "the model of all profiles that name no other", "model.name", ""},
	{"task", "what an agent does at set times", "", "/ui/schedule/new"},
	{"cron", "whether tasks run at set times", "cron.enabled", ""},
	{"heartbeat", "whether agents look after things on their own", "heartbeat.enabled", ""},
	{"workflow", "a file in the folder flows; its page has the editor", "", "/ui/flows"},
	{"workspace", "where agents run commands", "workspaces.provider", ""},
	{"memory", "whether agents remember their conversations", "agents.default.memory", ""},
	{"skills", "the folder of the skills", "skills_dir", ""},
}

// placesOf are the pages about what nodes of a kind do.
func placesOf(k nodes.Key) []advice {
	switch k.Kind {
	case nodes.Connector:
		return []advice{{Label: "Deliveries", URL: "/ui/deliveries"}, {Label: "Access", URL: "/ui/access"}}
	case nodes.Schedule:
		return []advice{{Label: "Schedule", URL: "/ui/schedule"}}
	case nodes.Flow:
		own := "/ui/flows/" + url.PathEscape(k.Name)
		return []advice{{Label: "Runs of the workflow", URL: own}, {Label: "Edit", URL: own + "/edit"}}
	case nodes.Agent:
		return []advice{{Label: "The agent", URL: "/ui/agents/" + url.PathEscape(k.Name)}}
	case nodes.Profile:
		return []advice{{Label: "Agents", URL: "/ui/agents"}}
	case nodes.Model:
		return []advice{{Label: "Usage", URL: "/ui/usage"}}
	case nodes.Tools, nodes.MCP, nodes.Workspace, nodes.Skills:
		return []advice{{Label: "Tools", URL: "/ui/tools"}}
	}
	return nil
}

// settingsOfKind are the groups of the configuration of nodes that are no entries in it: those of a kind, or
// of a single node.
var settingsOfKind = map[string][]string{
	nodes.Workspace: {"workspaces"}, nodes.Skills: {"skills_dir"}, nodes.Relay: {"relay"},
	"schedule/cron": {"cron"}, "schedule/heartbeat": {"heartbeat"}, "connector/web": {"http", "http_hosts"},
	"tools/web": {"web"}, "tools/agents": {"subagents"}, "tools/shell": {"workspaces"}, "memory/notes": {"agents.default.memory", "agents.default.global_notes"},
}
