package heartbeat

// What is remembered lies in a mark where one process has a data directory, and in a
// file of the Tree where nodes share one; it is the same JSON. Whoever copies one to
// the other needs the names.
const (
	Mark       = markKey
	SharedFile = stateFile
)
