package inbox

// An UnfinishedError says that a message was posted, and what follows from it was
// not done. Posting it again does that.
type UnfinishedError struct{ err error }

func (e *UnfinishedError) Error() string { return e.err.Error() }
func (e *UnfinishedError) Unwrap() error { return e.err }

// Unfinished is err as an UnfinishedError, nil for none.
func Unfinished(err error) error {
	if err == nil {
		return nil
	}
	return &UnfinishedError{err}
}
