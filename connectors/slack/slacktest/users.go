package slacktest

import "strings"

// A User is what Slack says about a user. All users whom SetUser does not name are full
// members of the bot's workspace.
type User struct {
	// Locale is told with include_locale alone. It is such as de-DE, and Zone such as Europe/Berlin; both
	// are left out where they are empty (docs.slack.dev/reference/methods/users.info, 2026-11-28).
	Locale, Zone    string
	ID              string
	Team            string   // home; default the bot's workspace
	Teams           []string // further workspaces, in an organization with several
	Restricted      bool     // a guest with several channels
	UltraRestricted bool     // a guest with one channel; Slack sets Restricted as well
	Stranger        bool     // of another organization, without a channel in common
	Deleted         bool     // deactivated
	Unknown         bool     // user_not_found
	Name            string   // display name; default none
	Bot             bool     // the user of another app
}

// SetUser changes what Slack says about a user.
func (s *Server) SetUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// userInfo is the answer of users.info. The lock is held.
func (s *Server) userInfo(id string, locale bool) answer {
	u := s.users[id]
	if id == "" || u.Unknown || strings.ContainsRune(id, '/') {
		return refuse("user_not_found")
	}
	if u.Team == "" {
		u.Team = s.cfg.Team
	}
	user := answer{
		"id": id, "team_id": u.Team, "name": strings.ToLower(id), "real_name": id, "deleted": u.Deleted, "updated": 1700000000,
		"is_bot": u.Bot || id == s.cfg.BotUser, "is_app_user": false, "profile": answer{"team": u.Team, "display_name": u.Name, "real_name": id},
	}
	if !u.Deleted { // Slack leaves them out of deactivated users
		for k, v := range map[string]bool{
			"is_admin": false, "is_owner": false, "is_primary_owner": false,
			"is_restricted": u.Restricted || u.UltraRestricted, "is_ultra_restricted": u.UltraRestricted,
		} {
			user[k] = v
		}
		if u.Zone != "" {
			user["tz"] = u.Zone
		}
		if locale && u.Locale != "" {
			user["locale"] = u.Locale
		}
	}
	if u.Team != s.cfg.Team || u.Stranger { // of users of other workspaces only
		user["is_stranger"] = u.Stranger
	}
	if len(u.Teams) > 0 {
		user["enterprise_user"] = answer{"id": id, "enterprise_id": "E1", "enterprise_name": "test", "is_admin": false, "is_owner": false, "teams": u.Teams}
	}
	return answer{"ok": true, "user": user}
}
