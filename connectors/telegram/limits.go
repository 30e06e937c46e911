package telegram

import (
	"time"

	"github.com/claybot/claybot/texts"
)

// maxPartUTF16 leaves room for the mark of a message that is sent again, so that mark and
// text are always one message.
var maxPartUTF16 = maxTextUTF16 - texts.ResentRoom()

// Limits of the Bot API, with their units.
const (
	maxTextUTF16  = 4096             // of a message, after formatting
	maxEntities   = 99               // of a message: Telegram shows 100, of which one is for the mark
	maxBatch      = 100              // updates of one getUpdates
	maxPoll       = 20 * time.Second // our own: Telegram allows more, but a poll that hangs must show within connectors.LiveWithin
	maxPollBytes  = 32 << 20
	maxReplyBytes = 1 << 20

	maxFileIDBytes   = 512
	maxDownloadBytes = 20 << 20 // of one file that people sent
	maxUploadBytes   = 50 << 20 // of one file to people
	// maxLocalUploadBytes is the same with a server in its mode --local.
	maxLocalUploadBytes = 2000 << 20
	maxPhotoBytes       = 10_000_000 // of one that is shown as a picture

	// The messages and edits that Telegram advises (core.telegram.org/bots/faq, "My bot is
	// hitting limits", read 2026-11-28).
	chatPerSecond  = 1
	groupPerMinute = 20
	allPerSecond   = 30

	maxDataBytes        = 64  // of a button
	maxToastUTF16       = 200 // of a callback answer
	maxPlaceholderUTF16 = 64
	maxRow              = 8 // buttons
)

// Times of our own.
const (
	pollGrace    = 15 * time.Second // what an answer may take beyond the poll's own time
	callTimeout  = 30 * time.Second
	dialTimeout  = 10 * time.Second
	conflictWait = 3 * time.Second // between polls while another poller or a webhook holds the bot
	retention    = 24 * time.Hour  // how long Telegram keeps updates
	gapWarning   = 23 * time.Hour
	gapShown     = 24 * time.Hour         // how long the health mentions a gap
	quickPoll    = time.Second            // an empty long poll that took less did not wait
	idleMin      = 200 * time.Millisecond // between polls that lead nowhere,
	idleMax      = 2 * time.Second        // doubling up to this
	maxSilence   = 24 * time.Hour         // the longest wait for a send
	asideTimeout = 5 * time.Second        // of a call that is best done soon or never
	choiceKept   = time.Minute            // lifetime of a choice that its message does not show
	choicePast   = 64                     // earlier states of a choice that are known
)

// Limits on what is passed on.
const (
	maxQuoteRunes = 2000
	maxNameRunes  = 100 // of a file, a place
	maxTasks      = 30  // of a checklist
)

// Limits of buttons.
const (
	maxLabelRunes  = 60  // of a label
	maxOptionRunes = 100 // of one that must not be truncated
	maxOptions     = 50
	maxAside       = 32 // concurrent calls for callbacks
)
