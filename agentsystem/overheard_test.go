package agentsystem_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
)

// overhears reports messages of a thread of room.
func (r *rig) overhears(thread string, ids ...string) {
	r.Helper()
	var all []connectors.Overheard
	for _, id := range ids {
		all = append(all, connectors.Overheard{In: room, Thread: thread, Said: claybot.Said{ID: id, UserID: "eve", At: claybot.Now(), Text: "said " + id}})
	}
	if err := r.system.Overheard(r.Context(), all); err != nil {
		r.Error(err)
	}
}

// claybot keeps what is said in groups that ask for context, and only there: a message brings
// what is new, also after a flood, a restart, and when the platform counts anew (CN-18).
func TestOverheard(t *testing.T) {
	bubble(t, func(r *rig) {
		n := 3
		r.profile.Context = &n
		r.start()
		says := func(thread, id string) {
			r.post(room, in(thread, id, id))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		r.overhears("", "7", "8", "8")
		r.overhears("77", "9")
		r.overhears("", "10")
		says("", "10")
		r.restart()
		says("77", "11")
		for i := range 20 { // a flood of 2,000 messages
			var ids []string
			for k := range 100 {
				ids = append(ids, fmt.Sprint(100+100*i+k))
			}
			r.overhears("", ids...)
			time.Sleep(time.Second)
		}
		r.overhears("", "5000")
		says("", "5000")
		time.Sleep(time.Second)
		r.overhears("", "2", "3") // the group has a new id
		says("", "3")
		r.wantEarlier("10: 7 8 others", "11: 9 others", "5000: 2097 2098 2099 more others", "3: 2 others")
		kept, err := r.db.SaidIn(r.Context(), storage.Chat{Connector: room.Connector, Channel: room.ChannelID}, "")
		if err != nil || len(kept) != 250 {
			r.Errorf("%d messages are kept, %v", len(kept), err)
		}
	})
}

// Nothing is kept where no profile asks for it, and it is removed when that changes.
func TestOverheardNothing(t *testing.T) {
	some, none := 5, 0
	for name, p := range map[string]profiles.Profile{"by default": {}, "no context": {Context: &none}, "off": {Context: &some, Respond: profiles.RespondOff}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.profile.Context = &some
				r.start()
				r.overhears("", "1")
				r.mu.Lock()
				r.profile.Context, r.profile.Respond = p.Context, p.Respond
				r.mu.Unlock()
				r.overhears("", "2")
				kept, err := r.db.SaidIn(r.Context(), storage.Chat{Connector: room.Connector, Channel: room.ChannelID}, "")
				if err != nil || !slices.ContainsFunc(kept, func(s claybot.Said) bool { return s.ID == "1" }) || len(kept) != 1 {
					r.Errorf("kept %+v, %v", kept, err)
				}
				time.Sleep(2 * time.Hour)
				if chats, err := r.db.SaidChats(r.Context()); err != nil || len(chats) > 0 {
					r.Errorf("still kept of %v, %v", chats, err)
				}
			})
		})
	}
}
