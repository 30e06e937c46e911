package dashboard

import (
	"net/http"

	"github.com/claybot/claybot/web"
)

const (
	setupTitle = "Set up claybot"
	doneSetup  = "Done."

	setupBotFather    = "https://t.me/BotFather"
	setupApplications = "https://discord.com/developers/applications"
	setupAddress      = "https://openrouter.ai/api/v1"
)

// setupPlaces begin the addresses outside to which the guide leads.
var setupPlaces = []string{"https://t.me/", "https://api.slack.com/", "https://discord.com/"}

// setupTitles are the titles of the steps.
var setupTitles = map[string]string{
	web.SetupModel: "Model", web.SetupTelegram: "Telegram", web.SetupSlack: "Slack", web.SetupDiscord: "Discord", web.SetupBudget: "Budget",
	web.SetupWorkspace: "Workspace", setupReply: "First reply",
}

// slackTokens are the tokens that Slack needs.
var slackTokens = map[string]string{"bot_token": "Bot token (xoxb-…)", "app_token": "App-level token (xapp-…)"}

var errSetupLate = problem(http.StatusGatewayTimeout, "late", "There was no answer in time; nothing was stored.", "Check the address and the network of the machine, and try again.")
