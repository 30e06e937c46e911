package telegramtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What sends share.
const (
	sendArgs  = " business_connection_id chat_id message_thread_id direct_messages_topic_id disable_notification protect_content allow_paid_broadcast message_effect_id suggested_post_parameters reply_parameters reply_markup "
	mediaArgs = sendArgs + "caption parse_mode caption_entities "
	editArgs  = " business_connection_id chat_id message_id inline_message_id reply_markup "
)

// methods is the table of request shapes: the parameters of each method that is known here,
// by its name in lower case. They are those of https://core.telegram.org/bots/api#<name>,
// as of 2026-11-28.
var methods = map[string]string{
	"getme":          "",
	"getupdates":     "offset limit timeout allowed_updates",
	"setwebhook":     "url certificate ip_address max_connections allowed_updates drop_pending_updates secret_token",
	"deletewebhook":  "drop_pending_updates",
	"getwebhookinfo": "",

	"sendmessage":      sendArgs + "text parse_mode entities link_preview_options ephemeral_message_parameters",
	"senddocument":     mediaArgs + "document thumbnail disable_content_type_detection",
	"sendphoto":        mediaArgs + "photo show_caption_above_media has_spoiler",
	"sendvoice":        mediaArgs + "voice duration",
	"sendaudio":        mediaArgs + "audio duration performer title thumbnail",
	"sendvideo":        mediaArgs + "video duration width height thumbnail cover start_timestamp show_caption_above_media has_spoiler supports_streaming",
	"sendmessagedraft": "chat_id message_thread_id draft_id text parse_mode entities",
	"sendchataction":   "business_connection_id chat_id message_thread_id action",

	"editmessagetext":        editArgs + "text parse_mode entities link_preview_options",
	"editmessagereplymarkup": editArgs,
	"deletemessage":          "chat_id message_id",
	"answercallbackquery":    "callback_query_id text show_alert url cache_time",
	"setmessagereaction":     "chat_id message_id reaction is_big",
	"getchatmember":          "chat_id user_id",

	"setmycommands":    "commands scope language_code",
	"deletemycommands": "scope language_code",
	"getmycommands":    "scope language_code",
	"getfile":          "file_id",
}

// objects are the fields of parameters that are objects, of the pages of their types.
var objects = map[string]string{
	"link_preview_options": "is_disabled url prefer_small_media prefer_large_media show_above_text",
	"scope":                "type chat_id user_id",
	"reply_parameters": "message_id chat_id ephemeral_message_id allow_sending_without_reply quote quote_parse_mode quote_entities quote_position " +
		"checklist_task_id poll_option_id",
}

// updateTypes are the kinds of updates of https://core.telegram.org/bots/api#update, as of
// 2026-11-28; those with false come only if a bot names them.
var updateTypes = map[string]bool{
	"message": true, "edited_message": true, "channel_post": true, "edited_channel_post": true, "business_connection": true,
	"business_message": true, "edited_business_message": true, "deleted_business_messages": true, "inline_query": true,
	"chosen_inline_result": true, "callback_query": true, "shipping_query": true, "pre_checkout_query": true,
	"purchased_paid_media": true, "poll": true, "poll_answer": true, "my_chat_member": true, "chat_join_request": true,
	"chat_boost": true, "removed_chat_boost": true, "managed_bot": true,

	"chat_member": false, "message_reaction": false, "message_reaction_count": false,
}

// check refuses methods and parameters that Telegram does not document. Telegram itself
// ignores unknown parameters.
func (s *Server) check(c *call) *apiError {
	allowed, known := methods[c.method]
	if !known {
		s.complain("unknown method %s", c.method)
		return &apiError{Code: 404, Description: "Not Found"}
	}
	var params map[string]json.RawMessage
	if len(c.params) > 0 && json.Unmarshal(c.params, &params) != nil {
		return nil // the method says so
	}
	for name, value := range params {
		if !slices.Contains(strings.Fields(allowed), name) {
			s.complain("unknown parameter %s of %s", name, c.method)
			return badRequest("unknown parameter %s", name)
		}
		var fields map[string]json.RawMessage
		if objects[name] == "" || json.Unmarshal(value, &fields) != nil {
			continue
		}
		for field := range fields {
			if !slices.Contains(strings.Fields(objects[name]), field) {
				s.complain("unknown field %s of %s", field, name)
				return badRequest("unknown field %s of %s", field, name)
			}
		}
	}
	return nil
}

// wanted checks a list of kinds of updates, which replaces the earlier one.
func (s *Server) wanted(kinds []string) {
	for _, kind := range kinds {
		if _, known := updateTypes[kind]; !known {
			s.complain("unknown kind of update %s", kind)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.allowed = slices.Clone(kinds)
}

// complain notes a call that Telegram does not document.
func (s *Server) complain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.strange, text) {
		s.strange = append(s.strange, text)
	}
}

// Strange returns the calls that Telegram does not document: unknown methods, parameters and
// kinds of updates. There should be none at the end of a test.
func (s *Server) Strange() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strange)
}
