package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/storage"
)

// planConfig is the configuration of the scene.
const planConfig = `
access:
  allow: [telegram:1001, slack:U1]
agents:
  default:
    engine: plan
    plan:
      mode: approve
      approvers: [slack/U1]
      intents:
        - name: meeting
          description: a room and lunch for a meeting
          inputs:
            - {key: people, text: "For how many people?", type: number, min: 1, max: 20, required: true}
            - {key: day, text: "For which day?", type: date, required: true}
`

// meetingPlan is what the scripted model plans.
const meetingPlan = `{"diff": "A room and lunch are booked.", "steps": [
	{"id": "step-01", "tool": "book_room", "what": "book the room", "args": {"day": "{{ inputs.day }}", "people": "{{ inputs.people }}"}, "risk": "low", "costEstimate": 0.02},
	{"id": "step-02", "tool": "book_lunch", "what": "order lunch", "args": {"day": "{{ inputs.day }}", "people": "{{ inputs.people }}"}, "risk": "low", "dependsOn": ["step-01"]}
]}`

// planScene shows a plan: what is missing is asked for on Telegram, a colleague
// approves on Slack, a step fails once, and everything is undone.
func planScene() scene {
	desk := new(office)
	return scene{
		name:   "plan",
		about:  "a plan asks what it must know on Telegram and for approval on Slack, tries a step again, and is undone",
		model:  planModel,
		config: planConfig,
		ready: func(s *stage) error {
			url, stop, err := listenLocal(desk)
			if err != nil {
				return err
			}
			desk.url = url
			s.stops = append(s.stops, stop)
			s.daemon.tooling.box.more = desk.tools()
			return nil
		},
		play: func(ctx context.Context, s *stage) error {
			if err := s.colleague(ctx); err != nil {
				return err
			}
			summary, err := s.meeting(ctx)
			if err != nil {
				return err
			}
			if got := desk.journal(); !slices.Equal(got, []string{"+room", "+lunch"}) || desk.orders != 2 {
				return fmt.Errorf("the office saw %v, lunch was tried %d times", got, desk.orders)
			}
			s.say("office", "one room, one lunch; the kitchen was asked twice")
			if err := s.undoMeeting(ctx, summary); err != nil {
				return err
			}
			if got := desk.journal(); !slices.Equal(got, []string{"+room", "+lunch", "-lunch", "-room"}) {
				return fmt.Errorf("the office saw %v", got)
			}
			s.say("office", "lunch is canceled, then the room; nothing is left")
			return nil
		},
	}
}

// planModel is the scripted model of the scene.
func planModel(r openaitest.Request) openaitest.Reply {
	asked := r.LastUser()
	switch {
	case strings.Contains(asked, "Write the JSON object") && strings.Contains(asked, "six people"):
		return openaitest.Reply{Text: `{"intent": "meeting", "inputValues": {"people": 6}}`}
	case strings.Contains(asked, "Write the JSON object"):
		return openaitest.Reply{Text: `{"intent": "none", "text": "Hello! I book rooms."}`}
	case strings.Contains(asked, "Write the plan"):
		return openaitest.Reply{Text: meetingPlan}
	case strings.Contains(asked, "Write the text"):
		return openaitest.Reply{Text: "The room is booked and lunch is ordered."}
	}
	return openaitest.Reply{Fault: openaitest.FaultBadRequest}
}

// colleague lets the one who approves write once, so that claybot knows where.
func (s *stage) colleague(ctx context.Context) error {
	s.said("slack direct", "hello")
	channel, _ := s.slack.DM(slackPerson, "hello")
	m, err := s.slack.WaitPosted(ctx, channel, func(slacktest.Message) bool { return true })
	if err != nil {
		return fmt.Errorf("no answer to the colleague: %w", err)
	}
	s.heard("slack direct", m.Text)
	s.direct = channel
	return nil
}

// meeting plays the plan up to its summary.
func (s *stage) meeting(ctx context.Context) (summary telegramtest.Message, err error) {
	if _, err := s.tell(ctx, "book a room with lunch for six people", 1); err != nil {
		return summary, err
	}
	before := len(s.telegram.Sent(telegramPerson))
	s.said("telegram", "2026-12-01")
	s.telegram.Say(telegramPerson, telegramPerson, "2026-12-01")
	m, err := s.slack.WaitPosted(ctx, s.direct, func(m slacktest.Message) bool { return slices.Contains(m.Buttons(), "Approve") })
	if err != nil {
		return summary, fmt.Errorf("the colleague was not asked: %w", err)
	}
	s.heard("slack direct", m.Text)
	s.say("slack direct >", "[Approve]")
	if _, err := s.slack.Click(slackPerson, s.direct, m.TS, "Approve"); err != nil {
		return summary, err
	}
	// The note that another person decides, and the summary.
	sent, err := s.telegram.WaitSent(ctx, telegramPerson, before+2)
	if err != nil {
		return summary, fmt.Errorf("no summary: %w", err)
	}
	summary = sent[len(sent)-1]
	if !strings.Contains(summary.Text, "lunch is ordered") {
		err = fmt.Errorf("the summary is %q", summary.Text)
	}
	return summary, err
}

// undoMeeting presses the button below the summary.
func (s *stage) undoMeeting(ctx context.Context, summary telegramtest.Message) error {
	before := len(s.telegram.Sent(telegramPerson))
	s.say("telegram >", "[Undo]")
	if _, ok := s.telegram.Press(telegramPerson, telegramPerson, summary.ID, "Undo"); !ok {
		return errors.New("the summary has no button to undo it")
	}
	sent, err := s.telegram.WaitSent(ctx, telegramPerson, before+2) // that it begins, and what came of it
	if err != nil {
		return fmt.Errorf("nothing was undone: %w", err)
	}
	if err := s.delivered(ctx); err != nil {
		return err
	}
	runs, err := s.daemon.system.Overview.RunPage(ctx, storage.RunQuery{Limit: 1})
	if err != nil {
		return err
	}
	if len(runs) == 0 || runs[0].Engine != claybot.EngineUndo || runs[0].State != claybot.RunSucceeded {
		return fmt.Errorf("the undo did not succeed; the bot said %q", sent[len(sent)-1].Text)
	}
	return nil
}
