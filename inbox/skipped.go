package inbox

import "github.com/claybot/claybot/storage"

// The reasons with which an inbox has messages that no run takes.
const (
	SkippedFull    = "inbox_full" // too many messages waited already
	SkippedFlood   = "flood"      // its sender wrote too many within a minute
	SkippedBot     = "bot"        // its sender is a bot that wrote too many within an hour
	SkippedRevoked = "revoked"    // its sender may not write any more
	// SkippedAccessDenied and SkippedNotApproved are of messages whose sender asked for access in
	// vain: an operator denied it, or the request ended without a decision. Their text is erased.
	SkippedAccessDenied = "access_denied"
	SkippedNotApproved  = "not_approved"
	SkippedDamaged      = "damaged"              // while it was parked
	SkippedStopped      = storage.SkippedStopped // by a /stop before its turn
)
