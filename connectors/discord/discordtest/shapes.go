package discordtest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// A shape is what Discord documents about a call or about an object in it: its page below
// https://docs.discord.com/developers, and its fields.
type shape struct{ page, fields string }

// shapes is the table of request shapes, as of 2026-11-28: of calls by their route, of objects by
// the field that has them, of components by their type, and of payloads of the gateway by their
// opcode. A route that is not here has no body.
var shapes = map[string]shape{
	"POST messages": {"resources/message#create-message", "content nonce tts embeds allowed_mentions message_reference components sticker_ids attachments flags enforce_nonce poll shared_client_theme"},
	"PATCH message": {"resources/message#edit-message", "content embeds flags allowed_mentions components attachments"},
	"PUT commands":  {"interactions/application-commands#application-command-object", "name name_localizations description description_localizations options default_member_permissions dm_permission default_permission nsfw integration_types contexts type handler"},
	"POST callback": {"interactions/receiving-and-responding#interaction-response-object", "type data"},

	"allowed_mentions":  {"resources/message#allowed-mentions-object", "parse roles users replied_user"},
	"message_reference": {"resources/message#message-reference-structure", "type message_id channel_id guild_id fail_if_not_exists"},
	"attachments":       {"resources/message#attachment-object-attachment-request-structure", "id filename title description duration_secs waveform is_spoiler"},
	"data 4":            {"interactions/receiving-and-responding#interaction-response-object-messages", "tts content embeds allowed_mentions flags components attachments poll"},
	"data 5":            {"interactions/receiving-and-responding#interaction-response-object-messages", "flags"},
	"data 9":            {"interactions/receiving-and-responding#interaction-response-object-modal", "custom_id title components"},
	"component 1":       {"components/reference#action-row", "type id components"},
	"component 2":       {"components/reference#button", "type id style label emoji custom_id sku_id url disabled"},
	"component 3":       {"components/reference#string-select", "type id custom_id options placeholder min_values max_values required disabled"},
	"component 4":       {"components/reference#text-input", "type id custom_id style min_length max_length required value placeholder label"}, // label is deprecated
	"component 18":      {"components/reference#label", "type id label description component"},
	"options of menu":   {"components/reference#string-select-select-option-structure", "label value description emoji default"},
	"options":           {"interactions/application-commands#application-command-object-application-command-option-structure", "type name name_localizations description description_localizations required choices options channel_types min_value max_value min_length max_length autocomplete file_types"},

	"opcode 2":   {"events/gateway-events#identify", "token properties compress large_threshold shard presence intents"},
	"properties": {"events/gateway-events#identify-identify-connection-properties", "os browser device"},
	"opcode 6":   {"events/gateway-events#resume", "token session_id seq"},
}

// queries are the query parameters of routes, of the pages of their calls.
var queries = map[string]string{
	"GET messages":  "around before after limit",
	"POST callback": "with_response",
}

// undocumented returns the first parameter of a call that Discord does not document, which Discord
// itself ignores, or that it does not take beside another one; empty if there is none.
func (c restCall) undocumented(route string, query url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(strings.Fields(queries[route]), name) || len(query[name]) > 1 {
			return "query parameter " + name
		}
	}
	if query.Has("before") && query.Has("after") || query.Has("around") && (query.Has("before") || query.Has("after")) {
		return "before, after and around are mutually exclusive"
	}
	for _, x := range c.list {
		if o, ok := x.(answer); ok {
			if found := unknownField(route, o); found != "" {
				return found
			}
		}
	}
	return unknownField(route, c.body)
}

// unknownField returns the first field of an object, or of the objects in it, that its shape has
// not; empty if there is none.
func unknownField(name string, of answer) string {
	known := strings.Fields(shapes[name].fields)
	for _, field := range slices.Sorted(maps.Keys(of)) {
		if !slices.Contains(known, field) {
			return "field " + field + " of " + name
		}
		all, _ := of[field].([]any)
		for _, x := range append(all, of[field]) {
			o, ok := x.(answer)
			if !ok {
				continue
			}
			inner := field
			switch {
			case field == "components" || field == "component":
				inner = fmt.Sprint("component ", o["type"])
			case field == "data":
				inner = fmt.Sprint("data ", of["type"])
			case field == "options" && name == "component 3":
				inner = "options of menu"
			}
			if _, ok := shapes[inner]; !ok && (field == "components" || field == "component" || field == "data") {
				return inner
			} else if ok {
				if found := unknownField(inner, o); found != "" {
					return found
				}
			}
		}
	}
	return ""
}
