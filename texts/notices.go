package texts

import (
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

const (
	textUndelivered = "A reply of mine could not be delivered here. /why tells what became of your last message."
	textMaybeLost   = "One of my last replies may be missing: the connection broke while I sent it."
	NotShown        = "A question of mine could not be shown here whole. It can be answered on the page, or with: claybot questions"
)

// NotDelivered is the notice about a message that was given up.
func NotDelivered(o claybot.Outgoing) string {
	if o.File == nil {
		return textUndelivered
	}
	return fmt.Sprintf("The file “%s” could not be delivered here. /why tells what became of your last message.", connectors.OneLine(o.File.Name, 80))
}

// MaybeMissing is the notice about a message that may not have arrived.
func MaybeMissing(o claybot.Outgoing) string {
	if o.File == nil {
		return textMaybeLost
	}
	return fmt.Sprintf("The file “%s” may be missing: the connection broke while I sent it.", connectors.OneLine(o.File.Name, 80))
}
