package slack

import "time"

// Limits of Slack, and times. Slack counts characters, not bytes.
const (
	maxTextChars = 4_000 // of one message; also what chat.update accepts at most

	maxSectionChars     = 3_000  // of the text of one section block
	maxMarkdownChars    = 12_000 // of the markdown blocks of one message
	maxTableChars       = 10_000 // of the cells of one message
	maxTableRows        = 100
	maxTableColumns     = 20
	maxTables           = 5     // of one text that are in a message each; claybot's own limit
	maxInputLabel       = 2_000 // characters of the label of an input block
	maxValueChars       = 2_000 // of what a button carries
	maxOptionValueChars = 150   // of what an option of a menu carries
	maxLabelChars       = 75    // of a button and of an option
	maxPlaceholderChars = 150
	maxHeaderChars      = 150
	maxTitleChars       = 60    // of a thread or a session; claybot's own limit
	maxHomeParts        = 3     // blocks of one section of the Home tab; claybot's own limit
	maxIDChars          = 255   // of a block and of an action
	maxInputChars       = 3_000 // that an input takes
	maxErrorChars       = 300   // shown at an input; claybot's own limit
	maxReasonChars      = 1_000 // of a denial; claybot's own limit
	maxPrivateChars     = 3_000 // that a modal carries
	maxShortcutChars    = 24    // of the name of a shortcut
	maxButtons          = 25    // in one block
	maxMenu             = 100   // options of a menu
	maxCheckboxes       = 10
	fewOptions          = 5 // at most so many are buttons, more are a menu

	answerTime = 2500 * time.Millisecond // Slack shows an error after 3 s without an acknowledgement
	openTime   = 3 * time.Second         // lifetime of a trigger, which opens a form
	directTime = 1500 * time.Millisecond // to find the direct chat of a person, before a form is opened
	homeTime   = 20 * time.Second        // a page of the Home tab
	sayTime    = 10 * time.Second        // an ephemeral message to the user who acted

	maxResponses = 5                // messages by one response_url
	responseLife = 30 * time.Minute // of a response_url
	socketsEvery = 10 * time.Minute // between two looks whether Socket Mode is off, where Slack sends requests
	socketsAgain = time.Minute      // the same while it is on
	tidyAgain    = time.Minute      // at least, between two looks for expired ones

	statusLasts = 90 * time.Second // a status is shown again after; Slack removes it after 2 minutes

	lookupTime  = 10 * time.Second // one look at a user
	nameTime    = 2 * time.Second  // the same for the name alone
	memberTime  = 10 * time.Minute // whether a user is a full member is remembered
	memberAgain = time.Minute      // the same after the token was refused
	maxMembers  = 10_000           // users that are remembered

	channelTime  = 10 * time.Minute // the name of a channel is remembered
	channelAgain = 5 * time.Minute  // the same after Slack did not say it
	maxChannels  = 10_000           // channels whose names are remembered

	maxStrange = 100 // unknown interactions that are logged

	maxFrameBytes  = 4 << 20 // one Socket Mode frame
	maxAnswerBytes = 8 << 20 // one answer of the Web API

	maxPending = 1_024 // envelopes taken in and not yet acknowledged

	firstRetry = 100 * time.Millisecond // of a message that cannot be stored, doubling
	lastRetry  = 4 * time.Second        // then Slack has to redeliver it

	silence      = 30 * time.Second // a socket without frame and ping for so long is dead
	drainTime    = 30 * time.Second // an old socket is read for so long after its successor's hello
	hurriedDrain = 5 * time.Second  // the same when its slot is needed
	stableAfter  = 10 * time.Second // a socket that lasted this long does not count as a failure
	dialTimeout  = 15 * time.Second // from asking for an address to hello
	writeTimeout = 10 * time.Second // one acknowledgement
	maxBackoff   = 30 * time.Second // between failed dials
	maxPause     = time.Hour        // the longest wait for a dial that Slack can ask for
	maxSilence   = 24 * time.Hour   // the same for any call
	callTimeout  = 30 * time.Second // one call of the Web API

	maxFileIDChars   = 64
	maxSnippetBytes  = 1_000_000
	maxDownloadBytes = 20 << 20 // of one file that people sent

	settleTime   = 5 * time.Second  // before a post is looked for in the history
	nearBack     = 5 * time.Second  // a post is searched from this long before its attempt
	nearAhead    = 40 * time.Second // to this long after it (a send takes at most 30 s),
	wideBack     = 60 * time.Second // and then in this range, because clocks differ
	wideAhead    = 3 * time.Minute
	historyItems = 100 // asked for in one page; Slack may give fewer
	historyPages = 10  // looked through at most
	spanItems    = 200 // asked for in one page of what an agent reads
	spanPages    = 5   // of it

	gapAfter      = 5 * time.Minute  // without a socket; before, Slack itself brings events again
	gapMargin     = 10 * time.Minute // before a gap is read as well: what was not acknowledged then
	keepEvery     = 15 * time.Second // the mark is looked at; it is written once a minute
	backfillReach = 24 * time.Hour   // older messages are not posted
	backfillTime  = 10 * time.Minute // for all conversations; the remaining ones get a notice
	backfillTries = 3                // of one page
	outageTries   = 7                // the same without an answer of Slack: after an outage, events may come before answers
	outageTime    = 4 * time.Minute  // without any answer of Slack, after which no conversation waits for more tries
	outagePause   = 4 * time.Second  // between reads that stay without an answer
	hastyTime     = 10 * time.Second // one read that other conversations wait for; less than patience
	backfillAgain = time.Minute      // until a gap that could not be closed is retried
	patience      = 30 * time.Second // that a message waits for earlier ones
	slashPatience = 2 * time.Second  // that a slash command does: Slack waits for 3 s and sends it once
	activeFor     = 30 * 24 * time.Hour
	maxThreads    = 20               // of one conversation that are read
	maxUnknown    = 200              // direct messages that are read although claybot knows of no recent message there
	listItems     = 200              // asked for in one page of conversations
	listPages     = 10               // of conversations
	listTime      = 20 * time.Second // for all of them; less than patience

	// editsPerMinute is what Slack allows of chat.update for an app in a workspace, tier 3
	// (docs.slack.dev/apis/web-api/rate-limits, read 2026-11-28).
	editsPerMinute = 50

	// The same of chat.appendStream, tier 4, and of each of chat.startStream and chat.stopStream,
	// tier 2.
	appendsPerMinute = 100
	streamsPerMinute = 20

	streamIdle    = time.Minute      // a stream to which nothing was added for so long is stopped
	streamLasts   = 10 * time.Minute // Slack itself has ended a stream by then
	sessionsAgain = time.Hour        // until a session is set after Slack refused one
	maxSessions   = 1_000            // threads whose session is remembered
	streamsAgain  = time.Hour        // until a stream is tried after Slack refused one
)
