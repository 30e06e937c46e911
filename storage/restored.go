package storage

// Ended counts the work that was unfinished when a store went back in time, and that has
// ended for that reason.
type Ended struct {
	Messages int // that waited for a run
	Parked   int // that waited for their agent
	Runs     int
	Sends    int
	// Reminders were due by then, so they may have come already.
	Reminders int
}
