package discord

import (
	"time"

	"github.com/claybot/claybot/texts"
)

// maxPartUTF16 leaves room for the mark of a message that is sent again.
var maxPartUTF16 = maxTextUTF16 - texts.ResentRoom()

// Limits of Discord, and times.
const (
	maxTextUTF16   = 2_000 // of one message; Discord counts characters, which are never more
	maxCustomID    = 100   // characters of what a button carries
	maxLabel       = 80    // of a button
	maxOptionChars = 100   // of an option of a menu, its label and its value
	maxMenu        = 25    // options
	maxRowButtons  = 5
	maxRows        = 5
	maxInputs      = 5  // of a form
	maxTitle       = 45 // of a form, and of the label of an input
	maxDescription = 100
	maxInput       = 4_000

	maxFrameBytes    = 16 << 20 // one payload of the gateway
	maxAnswerBytes   = 8 << 20  // one answer of the REST API
	maxDownloadBytes = 20 << 20 // of one file that people sent
	maxUploadBytes   = 10 << 20 // of one file to people; servers with boosts allow more

	perSecond       = 50   // requests of a bot in all
	invalidLimit    = 5000 // of 10,000 refused requests within invalidWindow, after which Discord blocks the address
	invalidWindow   = 10 * time.Minute
	reservedForLast = 1 // calls of a bucket that unfinished text leaves for the final one

	identifyEvery = 5 * time.Second // one identify in so long, for each of max_concurrency
	refusedSlower = 4               // times the usual pause after a refused session: 1,000 may be started in a day
	answerTime    = 2500 * time.Millisecond
	asideTime     = 10 * time.Second // of a call that is best done soon or never
	dialTimeout   = 15 * time.Second // from connecting to hello
	writeTimeout  = 10 * time.Second
	beatMost      = 20 * time.Second // between heartbeats: the 41 s that Discord asks for would show a dead gateway too late
	shortWait     = time.Second      // that a reaction waits: Discord allows few in a row
	callTimeout   = 30 * time.Second
	freshURL      = 2 // failed dials, after which the address of the gateway is asked for again

	maxPending = 1_024                  // events taken in and not yet stored; beyond that, the gateway is not read
	firstRetry = 100 * time.Millisecond // of an event that cannot be stored, doubling
	lastRetry  = 30 * time.Second

	gapMargin        = 2 * time.Minute // before a gap is read as well; the mark is written once a minute
	backfillReach    = 24 * time.Hour  // older messages are not posted
	backfillTries    = 3               // of one page, at least
	backfillPatience = 5 * time.Minute // that tries go on, see backfill.call
	backfillAtOnce   = 8               // conversations
	activeFor        = 30 * 24 * time.Hour
	pageItems        = 100 // of one page of messages
	maxPages         = 10  // of one channel that an agent reads
	gapPages         = 100 // of one channel after the beginning of a gap
	maxNewThreads    = 50  // of one channel after a gap, besides those in which people wrote to claybot
	findPages        = 3
	nearBack         = 30 * time.Second // a message is searched from this long before its attempt, because clocks differ,
	nearAhead        = 60 * time.Second // to this long after it
	nonceSure        = 2 * time.Minute  // in which Discord surely knows a nonce: "the past few minutes"

	lookAgain   = time.Minute // between two looks for the ids of commands in the store
	maxAuthors  = 10_000      // messages whose author is remembered
	maxReceipts = 1_000       // own messages that are remembered by their nonce
	maxChannels = 10_000      // that are remembered
	maxNames    = 100         // characters of a sticker's name
	maxQuote    = 2_000       // characters
)
