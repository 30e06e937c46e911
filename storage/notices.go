package storage

// The notices that a store puts into the outbox by itself. It knows no languages: what sends
// them says them in that of their reader.
const (
	NoticeDamaged  = "Something went wrong while I worked on this."
	NoticeRestored = "My database is back at an earlier state. Messages that had no reply may be lost. Please send them again."
)
