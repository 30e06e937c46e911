package telegramtest

import (
	"fmt"
	"time"
)

// ConnectBusiness makes a person let the bot act for their business account, end that, or change
// what the bot may do, and tells the bot, if it asked for that. It returns the id of the update
// and that of the connection, which stays the same for the person. Shapes:
// core.telegram.org/bots/api#businessconnection and …#businessbotrights, read 2026-11-28.
func (s *Server) ConnectBusiness(user int64, enabled bool) (update int64, connection string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	connection = businessID(user)
	if s.business == nil {
		s.business = make(map[string]bool)
	}
	s.business[connection] = enabled
	return s.deliver("business_connection", mustJSON(map[string]any{
		"id": connection, "user": s.user(user), "user_chat_id": user, "date": time.Now().Unix(),
		"rights": map[string]any{"can_reply": true, "can_read_messages": true}, "is_enabled": enabled,
	})), connection
}

// WriteToBusiness lets a person write to the business account of an owner, change that message and
// delete it, and tells the bot of each, if it asked for that and acts for the account. It returns
// the ids of the updates. Shapes: core.telegram.org/bots/api#message, business_connection_id, and
// …#businessmessagesdeleted, read 2026-11-28.
func (s *Server) WriteToBusiness(owner, user int64, text string) (updates []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	connection := businessID(owner)
	if !s.business[connection] {
		return nil
	}
	c := &chat{id: user}
	id := s.nextMessage(c)
	m := s.incoming(c, id, Incoming{ChatID: user, UserID: user, Text: text})
	m["business_connection_id"] = connection
	updates = append(updates, s.deliver("business_message", mustJSON(m)))
	m["text"], m["edit_date"] = text+" (edited)", time.Now().Unix()
	updates = append(updates, s.deliver("edited_business_message", mustJSON(m)))
	return append(updates, s.deliver("deleted_business_messages", mustJSON(map[string]any{
		"business_connection_id": connection, "chat": s.describe(c), "message_ids": []int64{id},
	})))
}

func businessID(user int64) string { return fmt.Sprint("business-", user) }
