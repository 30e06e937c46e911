package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A call is one request on its way.
type call struct {
	method string // in lower case
	ctx    context.Context
	params []byte // JSON
	chat   int64
	file   *upload // of a request that brings one
}

// An apiError is a refusal in Telegram's form.
type apiError struct {
	Code        int
	Description string
	RetryAfter  int // seconds
	MigrateTo   int64
}

// encode makes the body of an answer.
func encode(result []byte, e *apiError) (status int, body []byte) {
	if e == nil {
		b := make([]byte, 0, len(result)+24)
		b = append(b, `{"ok":true,"result":`...)
		b = append(b, result...)
		return http.StatusOK, append(b, '}')
	}
	answer := map[string]any{"ok": false, "error_code": e.Code, "description": e.Description}
	parameters := map[string]any{}
	if e.RetryAfter > 0 {
		parameters["retry_after"] = e.RetryAfter
	}
	if e.MigrateTo != 0 {
		parameters["migrate_to_chat_id"] = e.MigrateTo
	}
	if len(parameters) > 0 {
		answer["parameters"] = parameters
	}
	return e.Code, mustJSON(answer)
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("telegramtest: " + err.Error()) // a test delivered something that is not JSON
	}
	return b
}

// formJSON turns form values into a JSON object: what must be a string is
// quoted, the rest stands as it is when it is JSON.
func formJSON(values url.Values) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for key, v := range values {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(mustJSON(key))
		b.WriteByte(':')
		switch key {
		case "text", "caption", "file_id", "parse_mode", "action", "url", "secret_token", "reply_markup", "callback_query_id":
			b.Write(mustJSON(v[0]))
		default:
			if json.Valid([]byte(v[0])) {
				b.WriteString(v[0])
			} else {
				b.Write(mustJSON(v[0]))
			}
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// An integer is a number that may come as a string.
type integer int64

// UnmarshalJSON reads 12 and "12".
func (i *integer) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*i = integer(n)
	return err
}

// handle does the work of a call.
func (s *Server) handle(c *call) ([]byte, *apiError) {
	if e := s.check(c); e != nil {
		return nil, e
	}
	switch c.method {
	case "getme":
		return mustJSON(map[string]any{
			"id": s.bot, "is_bot": true, "first_name": s.cfg.Username, "username": s.cfg.Username,
			"can_join_groups": true, "can_connect_to_business": true, "can_read_all_group_messages": s.cfg.SeesAll,
		}), nil
	case "getupdates":
		return s.getUpdates(c)
	case "sendmessage":
		return s.sendMessage(c)
	case "sendmessagedraft":
		return s.sendDraft(c)
	case "editmessagetext":
		return s.editMessage(c)
	case "editmessagereplymarkup":
		return s.editMarkup(c)
	case "answercallbackquery":
		return s.answerPress(c)
	case "deletemessage":
		return s.deleteMessage(c)
	case "sendchataction":
		return s.chatAction(c)
	case "setmycommands":
		return s.setCommands(c)
	case "deletemycommands":
		return s.deleteCommands(c)
	case "getmycommands":
		return s.getCommands(c)
	case "getfile":
		return s.getFile(c)
	case "senddocument", "sendphoto", "sendvoice", "sendaudio", "sendvideo":
		return s.sendFile(c)
	case "setmessagereaction":
		return s.setReaction(c)
	case "getchatmember":
		return s.chatMember(c)
	case "setwebhook", "deletewebhook", "getwebhookinfo":
		return s.webhooks(c)
	}
	return nil, &apiError{Code: 404, Description: "Not Found"}
}

func badParams(err error) *apiError {
	return &apiError{Code: 400, Description: "Bad Request: can't parse parameters: " + err.Error()}
}
