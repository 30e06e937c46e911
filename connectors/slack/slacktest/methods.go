package slacktest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A method is what Slack documents about a method of the Web API. Its page is
// https://docs.slack.dev/reference/methods/<name>.
type method struct {
	tier  int    // calls per minute and workspace; 0: none is documented
	scope string // that the token needs; empty: none, or one that depends on the channel
	app   bool   // called with the app-level token
	args  string // all arguments, beside the token
}

// The tiers of https://docs.slack.dev/apis/web-api/rate-limits: so many calls per minute of
// one method by one app in one workspace. Slack allows "at least" that; here it is exact,
// but for tier 1: Slack tolerates small bursts of these calls.
const (
	tier1 = 10
	tier2 = 20
	tier3 = 50
	tier4 = 100
)

// methods is the table of request shapes. Arguments and scopes are those of the pages above
// as of 2026-08-20, of assistant.threads.*, conversations.info, conversations.open and all tiers as of 2026-11-28. Limits of
// assistant.threads.setStatus are special, without a number; chat.postMessage and chat.postEphemeral have a
// limit for each channel instead, see Config.PostEvery.
var methods = map[string]method{
	"agents.sessions.setStatus": {tier3, "chat:write", false, "channel_id icon_emoji icon_url initiator_user_id status thread_ts title username"}, // as of 2026-11-30

	"apps.connections.open": {tier1, "connections:write", true, ""},
	"apps.manifest.create":  {tier1, "", false, "manifest team_id"}, // with ConfigToken; as of 2026-11-30
	"auth.test":             {0, "", false, ""},
	"oauth.v2.access":       {0, "", false, "client_id client_secret code code_verifier grant_type redirect_uri refresh_token"},

	"assistant.threads.setStatus":           {0, "chat:write", false, "channel_id icon_emoji icon_url loading_messages status thread_ts username"},
	"assistant.threads.setSuggestedPrompts": {tier4, "assistant:write", false, "channel_id prompts thread_ts title"},
	"assistant.threads.setTitle":            {tier4, "assistant:write", false, "channel_id thread_ts title"}, // as of 2026-11-30

	"chat.appendStream":  {tier4, "chat:write", false, "channel chunks markdown_text ts"},
	"chat.postEphemeral": {tier4, "chat:write", false, "as_user attachments blocks channel icon_emoji icon_url link_names markdown_text metadata parse text thread_ts user username"},
	"chat.postMessage":   {0, "chat:write", false, "as_user attachments blocks channel icon_emoji icon_url link_names markdown_text metadata mrkdwn parse reply_broadcast text thread_ts unfurl_links unfurl_media username"},
	"chat.startStream":   {tier2, "chat:write", false, "channel chunks icon_emoji icon_url markdown_text recipient_team_id recipient_user_id task_display_mode thread_ts username"},
	"chat.stopStream":    {tier2, "chat:write", false, "blocks channel chunks markdown_text metadata ts"},
	"chat.update":        {tier3, "chat:write", false, "as_user attachments blocks channel file_ids link_names markdown_text metadata parse reply_broadcast text ts unfurled_attachments"},

	"conversations.history": {tier3, "", false, "channel cursor include_all_metadata inclusive latest limit oldest"},
	"conversations.info":    {tier3, "", false, "channel include_locale include_num_members"},
	"conversations.list":    {tier2, "", false, "cursor exclude_archived limit team_id types"},
	"conversations.open":    {tier3, "im:write", false, "channel prevent_creation return_im users"},
	"conversations.replies": {tier3, "", false, "channel cursor include_all_metadata inclusive latest limit oldest ts"},

	"files.completeUploadExternal": {tier4, "files:write", false, "blocks channel_id channels files icon_emoji icon_url initial_comment thread_ts username"},
	"files.getUploadURLExternal":   {tier4, "files:write", false, "alt_txt filename length snippet_type"},
	"files.info":                   {tier4, "files:read", false, "count cursor file limit page"},

	"reactions.add":    {tier3, "reactions:write", false, "channel name timestamp"},
	"reactions.remove": {tier2, "reactions:write", false, "channel file file_comment name timestamp"},

	"users.info":    {tier4, "users:read", false, "include_locale user"},
	"views.publish": {tier4, "", false, "hash user_id view"},
	"views.open":    {tier4, "", false, "interactivity_pointer trigger_id view"},
}

// check refuses what Slack refuses before a method works: unknown methods, wrong tokens,
// missing scopes, calls above the method's tier, and, unlike Slack, which ignores them,
// unknown arguments. The lock is held.
func (s *Server) check(name, token string, args url.Values) answer {
	m, known := methods[name]
	if !known {
		s.complain("unknown method %s", name)
		return refuse("unknown_method")
	}
	if creates := name == "apps.manifest.create"; creates || token == ConfigToken {
		switch {
		case creates && token != ConfigToken && s.authorize(m, token) != "" && token != s.cfg.AppToken:
			return refuse(s.authorize(m, token))
		case creates != (token == ConfigToken):
			return refuse("not_allowed_token_type")
		}
	} else if code := s.authorize(m, token); code != "" && name != "oauth.v2.access" {
		return refuse(code)
	}
	if wait := s.spend(name, m.tier); wait > 0 {
		return answer{"ok": false, "error": "ratelimited", "retry": wait}
	}
	if a := s.lacking(m.scope); a != nil {
		return a
	}
	allowed := strings.Fields(m.args)
	for arg := range args {
		if arg != "token" && !slices.Contains(allowed, arg) {
			s.complain("unknown argument %s of %s", arg, name)
			a := refuse("invalid_arguments")
			a["response_metadata"] = answer{"messages": []string{"[ERROR] unknown argument: " + arg}}
			return a
		}
	}
	return nil
}

// authorize checks the token and its role.
func (s *Server) authorize(m method, token string) string {
	switch {
	case token == "":
		return "not_authed"
	case token != s.cfg.AppToken && s.botToken(token) != "":
		return s.botToken(token)
	case s.uninstalled:
		return "account_inactive"
	case m.app != (token == s.cfg.AppToken):
		return "not_allowed_token_type"
	}
	return ""
}

// lacking refuses a call for which the app has no scope. The lock is held.
func (s *Server) lacking(scope string) answer {
	if scope == "" || scope == "connections:write" || s.granted(scope) {
		return nil
	}
	return answer{"ok": false, "error": "missing_scope", "needed": scope, "provided": strings.Join(s.provided(), ",")}
}

// granted reports whether the app has a scope. The lock is held.
func (s *Server) granted(scope string) bool {
	return s.app.scopes[scope] && !s.noScope[scope]
}

// provided are the scopes of the bot token. The lock is held.
func (s *Server) provided() (all []string) {
	for scope := range s.app.scopes {
		if s.granted(scope) {
			all = append(all, scope)
		}
	}
	slices.Sort(all)
	return all
}

// Lack takes a scope from the app, or gives it back.
func (s *Server) Lack(scope string, lacks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noScope[scope] = lacks
}

// scoped tells an app, as Slack does in each answer, which scopes its token has.
func (s *Server) scoped(w http.ResponseWriter, name, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case token == s.cfg.AppToken:
		w.Header().Set("X-OAuth-Scopes", "connections:write")
	case s.botToken(token) == "":
		w.Header().Set("X-OAuth-Scopes", strings.Join(s.provided(), ","))
	}
	if scope := methods[name].scope; scope != "" {
		w.Header().Set("X-Accepted-OAuth-Scopes", scope)
	}
}

// spend counts a call of a method, or says how long to wait for it: in no minute there are
// more than the tier allows. The lock is held.
func (s *Server) spend(name string, perMinute int) time.Duration {
	if n, ok := s.cfg.PerMinute[name]; ok {
		perMinute = n
	}
	if perMinute <= 0 {
		return 0
	}
	now := time.Now()
	spent := s.spent[name]
	for len(spent) > 0 && now.Sub(spent[0]) >= time.Minute {
		spent = spent[1:]
	}
	if len(spent) >= perMinute {
		s.spent[name] = spent
		return time.Minute - now.Sub(spent[0])
	}
	s.spent[name] = append(spent, now)
	return 0
}

// complain notes a call that Slack does not document. The lock is held.
func (s *Server) complain(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.strange, text) {
		s.strange = append(s.strange, text)
	}
}

// Strange returns the calls that Slack does not document: unknown methods and arguments.
// There should be none at the end of a test.
func (s *Server) Strange() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strange)
}
