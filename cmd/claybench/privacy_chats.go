package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// The people of the rig of secrets, and where several of them read. Ann has accounts on
// both platforms.
const (
	ann     readership = "ann"
	bob     readership = "bob"
	cyd     readership = "cyd"
	group   readership = "group"
	channel readership = "channel"
	unknown readership = "unknown user"
)

const leakAgain = 300 * time.Millisecond // until Slack repeats what was not acknowledged

const (
	leakGroup   = -100
	leakChannel = "C1"
)

// leakMembers are the people of the places, and leakNames who questions mean.
var (
	leakMembers = map[readership][]readership{group: {ann, bob}, channel: {ann, cyd}}
	leakNames   = map[string]readership{
		"telegram/1001": ann, "telegram/1002": bob, "slack/U1": ann, "slack/U2": cyd,
		"everybody in telegram/-100": group, "everybody in slack/T1/C1": channel,
	}
)

// leakChats are all chats, as send_message names them. All are in send_to: without that, it reaches
// none of other people.
var leakChats = []string{"telegram:1001", "telegram:1002", "telegram:-100", "slack:T1/DU1", "slack:T1/DU2", "slack:T1/C1"}

var (
	telegramIDs = map[readership]int64{ann: 1001, bob: 1002, unknown: 9999}
	slackIDs    = map[readership]string{ann: "U1", cyd: "U2"}
)

// openChats starts the platforms with everybody's chats.
func (r *leakRig) openChats() (*places, error) {
	r.judge = newLeakJudge(leakMembers, leakNames)
	p := new(places)
	p.telegram = telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true, OnMessage: func(m telegramtest.Message) { r.onTelegram(p.telegram, m) }})
	p.slack = slacktest.New(slacktest.Config{Manifest: slack.Manifest, Redeliver: leakAgain, NoEcho: true, OnMessage: func(m slacktest.Message) { r.onSlack(p.slack, m) }})
	if err := p.open(); err != nil {
		return nil, err
	}
	p.env = append(p.env, "CLAYBOT_ACCESS=allowlist")
	direct := func(who readership) {
		if id := telegramIDs[who]; id != 0 {
			r.seats = append(r.seats, &seat{"telegram " + string(who), who, func(text string) { p.telegram.Say(id, id, text) }})
		}
		if id := slackIDs[who]; id != "" {
			r.seats = append(r.seats, &seat{"slack " + string(who), who, func(text string) { p.slack.DM(id, text) }})
		}
	}
	direct(ann)
	direct(bob)
	direct(cyd)
	for _, who := range r.judge.members[group] {
		r.seats = append(r.seats, &seat{"group " + string(who), group, func(text string) { p.telegram.Mention(leakGroup, telegramIDs[who], text) }})
	}
	for _, who := range r.judge.members[channel] {
		r.seats = append(r.seats, &seat{"channel " + string(who), channel, func(text string) { p.slack.Mention(leakChannel, slackIDs[who], text, false) }})
	}
	return p, nil
}

func (r *leakRig) onTelegram(s *telegramtest.Server, m telegramtest.Message) {
	by := unknown
	for who, id := range telegramIDs {
		if id == m.ChatID {
			by = who
		}
	}
	if m.ChatID == leakGroup {
		by = group
	}
	var labels []string
	for _, row := range m.Keyboard {
		for _, b := range row {
			labels = append(labels, b.Text)
		}
	}
	r.heard(shown{
		chat: "telegram " + strconv.FormatInt(m.ChatID, 10), id: strconv.FormatInt(m.ID, 10), reader: by, text: m.Text, buttons: labels,
		press: func(by readership, label string) { s.Press(m.ChatID, telegramIDs[by], m.ID, label) },
	})
}

func (r *leakRig) onSlack(s *slacktest.Server, m slacktest.Message) {
	by := unknown
	for who, id := range slackIDs {
		if "D"+id == m.Channel {
			by = who
		}
	}
	if m.Channel == leakChannel {
		by = channel
	}
	r.heard(shown{
		chat: "slack " + m.Channel, id: m.TS, reader: by, text: m.Text + fmt.Sprint(m.Blocks), buttons: m.Buttons(),
		press: func(by readership, label string) { _, _ = s.Click(slackIDs[by], m.Channel, m.TS, label) },
	})
}
