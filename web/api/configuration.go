package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/web"
)

// configuration serves the configuration file. Without one, its operations fail.
type configuration struct{ web.Configuration }

func (c configuration) operations() []operation {
	match := param{name: "If-Match", about: "Version of the file that the change is based on. If the file has another one, nothing changes and the status is 412.", header: true}
	group := operation{
		tag: "configuration", fails: []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed},
		missing: hint{"No such key or change.", "GET /config lists the keys, and GET /config/history the changes."},
	}
	all := group.like(
		returns(http.StatusOK, op("getConfig", web.Admin, "GET /config", "List the keys of the configuration with their values in force and where they come from.").
			failing(http.StatusNotFound), func(r *http.Request) (web.ConfigView, error) {
			v, err := c.Configuration.Configuration(r.Context())
			v.Keys = orEmpty(v.Keys)
			return v, err
		}),
		takes(http.StatusOK, op("setConfigKey", web.Admin, "PUT /config/{key}", "Set a key in the configuration file and apply it.").query(match).
			explained("What would not be valid is refused, and nothing changes. All other lines of the file stay as they are."), func(r *http.Request, in web.ConfigValue) (web.ConfigChanged, error) {
			version, err := ifMatch(r)
			switch {
			case err != nil:
				return web.ConfigChanged{}, err
			case in.Value == "" && in.Secret == "":
				return web.ConfigChanged{}, bad("The field value is missing.", "DELETE removes a key; an empty text is \"\" in quotes.")
			case in.Value != "" && in.Secret != "":
				return web.ConfigChanged{}, bad("Set either value or secret.", "")
			}
			return c.ChangeConfig(r.Context(), web.ConfigEdit{Key: r.PathValue("key"), Value: &in.Value, Secret: in.Secret, By: web.User(r), Version: version})
		}),
		takes(http.StatusOK, op("addConfigEntry", web.Admin, "POST /config/entries/{kind}", "Add an entry, such as a connector, to the configuration file and apply it.").query(match).
			explained("The kinds are telegram, slack, discord, webhook, mcp, profile, fallback, search, budget and relay. The entry is one change, which its history undoes. One that is not valid is refused, with what is wrong by field."), func(r *http.Request, in web.ConfigEntry) (web.ConfigChanged, error) {
			version, err := ifMatch(r)
			if err != nil {
				return web.ConfigChanged{}, err
			}
			return c.ChangeConfig(r.Context(), web.ConfigEdit{Key: in.Name, Kind: r.PathValue("kind"), Fields: in.Fields, By: web.User(r), Version: version})
		}),
		returns(http.StatusOK, op("unsetConfigKey", web.Admin, "DELETE /config/{key}", "Remove a key, or an entry as a whole, from the configuration file and apply it.").query(match).
			explained("Of a key, its default holds then. An entry is connectors.NAME, mcp.NAME, agents.NAME or relay.NAME."), func(r *http.Request) (web.ConfigChanged, error) {
			version, err := ifMatch(r)
			if err != nil {
				return web.ConfigChanged{}, err
			}
			return c.ChangeConfig(r.Context(), web.ConfigEdit{Key: r.PathValue("key"), By: web.User(r), Version: version})
		}),
		returns(http.StatusOK, op("configHistory", web.Admin, "GET /config/history", "List the changes of the configuration file that were made with claybot.").
			failing(http.StatusNotFound), func(r *http.Request) (web.ConfigChanges, error) {
			all, err := c.ConfigHistory(r.Context())
			slices.Reverse(all)
			return web.ConfigChanges{Changes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("revertConfig", web.Admin, "POST /config/history/{n}/revert", "Undo a change of the configuration file, unless its key has changed again.").query(match), func(r *http.Request) (web.ConfigChanged, error) {
			n, err := strconv.Atoi(r.PathValue("n"))
			if err != nil || n < 1 {
				return web.ConfigChanged{}, bad("The number of a change is a number from 1.", "GET /config/history lists them.")
			}
			version, err := ifMatch(r)
			if err != nil {
				return web.ConfigChanged{}, err
			}
			return c.RevertConfig(r.Context(), n, web.User(r), version)
		}),
	)
	return whereOn(c.Configuration != nil, &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "This daemon shows no configuration."}, all)
}

// ifMatch is the version in the header If-Match; empty for any, which is without the header or with
// its value *.
func ifMatch(r *http.Request) (string, error) {
	all := r.Header.Values("If-Match")
	if len(all) == 0 {
		return "", nil
	}
	switch v := strings.Trim(all[0], `" `); {
	case v == "" || len(all) > 1:
		return "", bad("The header If-Match names no version.", "Send the version from GET /config, or leave the header out to change the file whatever it says.")
	case v == "*":
		return "", nil
	default:
		return v, nil
	}
}
