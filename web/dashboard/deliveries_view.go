package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// deliveryRows is how many messages one page of the outbox has.
	deliveryRows = 50
	// previewRunes is how much of a text stands in a row.
	previewRunes = 140
)

// A deliveryFilter is what the list of the outbox shows.
type deliveryFilter struct {
	Show               string // open, waiting, failed, ambiguous, sent; empty for all
	Connector, Channel string // one destination
	Before             int64
}

// deliveryFilters are the choices, with the words on their buttons.
var deliveryFilters = []struct{ Show, Words string }{
	{"", "All"}, {"open", "Open"}, {"failed", "Failed"}, {"ambiguous", "Ambiguous"}, {"sent", "Sent"},
}

// query is f as the store wants it. What is no filter shows all.
func (f deliveryFilter) query() storage.OutgoingQuery {
	q := storage.OutgoingQuery{Before: f.Before, Limit: deliveryRows + 1}
	switch f.Show {
	case "open":
		q.Open = true
	case "waiting", "attempted", "failed", "ambiguous", "sent":
		q.State = claybot.SendState(f.Show)
	}
	if f.Connector != "" {
		q.Dest = claybot.Route{Connector: f.Connector, ChannelID: f.Channel}.Dest()
	}
	return q
}

// values is f as it stands in an address, with other Before.
func (f deliveryFilter) values(before int64) url.Values {
	v := url.Values{}
	for name, s := range map[string]string{"show": f.Show, "connector": f.Connector, "channel": f.Channel} {
		if s != "" {
			v.Set(name, s)
		}
	}
	if before != 0 {
		v.Set("before", fmt.Sprint(before))
	}
	return v
}

// A deliveryView is one message of the outbox as the page shows it.
type deliveryView struct {
	claybot.Outgoing
	Tone    string // good, bad, busy, warn
	Words   string // of the state
	About   string // what kind of message it is
	Preview string
	Whole   bool   // the preview is all of the text
	Place   string // of the filter for its destination
	Retry   bool   // may be sent again
	Drop    bool   // may be given up
}

func viewDelivery(o claybot.Outgoing) deliveryView {
	v := deliveryView{Outgoing: o, About: cmp.Or(map[claybot.OutgoingKind]string{
		claybot.OutgoingAnswer: "reply", claybot.OutgoingNotice: "notice",
		claybot.OutgoingCommand: "answer to a command", claybot.OutgoingPairing: "pairing code", claybot.OutgoingFile: "file",
	}[o.Kind], string(o.Kind))}
	v.Tone, v.Words = sendWords(o)
	v.Retry = o.State == claybot.SendFailed || o.State == claybot.SendWaiting
	v.Drop = o.State == claybot.SendWaiting
	v.Preview = connectors.OneLine(o.Text, previewRunes)
	v.Whole = v.Preview == strings.TrimSpace(o.Text)
	if o.File != nil {
		v.Preview = strings.TrimSpace("[" + connectors.FileLine(*o.File) + "] " + v.Preview)
	}
	v.Place = deliveryFilter{Connector: o.Route.Connector, Channel: o.Route.ChannelID}.at(0)
	return v
}

// sendWords says how far a message has come.
func sendWords(o claybot.Outgoing) (tone, words string) {
	switch o.State {
	case claybot.SendWaiting:
		if o.Attempts > 0 {
			return "busy", "waits for another try"
		}
		return "busy", "waits to be sent"
	case claybot.SendAttempted:
		return "busy", "on its way"
	case claybot.SendSent:
		return "good", "sent"
	case claybot.SendAmbiguous:
		return "warn", "may have arrived"
	case claybot.SendFailed:
		return "bad", "not delivered"
	}
	return "busy", string(o.State)
}

// A stateCount is how many there are in one state.
type stateCount struct {
	Name, Words, Tone, URL string
	N                      int
}

// outboxCounts are the figures above the list.
func outboxCounts(counts map[claybot.SendState]int) []stateCount {
	all := make([]stateCount, 0, 5)
	for _, s := range []claybot.SendState{claybot.SendWaiting, claybot.SendAttempted, claybot.SendAmbiguous, claybot.SendFailed, claybot.SendSent} {
		tone, words := sendWords(claybot.Outgoing{State: s})
		all = append(all, stateCount{Name: string(s), Words: words, Tone: tone, N: counts[s], URL: "/ui/deliveries?show=" + string(s)})
	}
	return all
}
