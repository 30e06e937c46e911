// Package runstest checks the events of runs in tests.
package runstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// CheckEvent reports what is wrong with an event: a type that is not in runs.Facts,
// data that does not fit the type's Facts exactly, or no run.
func CheckEvent(e claybot.Event) error {
	fact, ok := runs.Facts[e.Type]
	switch {
	case !ok:
		return fmt.Errorf("event of type %q: there is no such type", e.Type)
	case e.V != 1:
		return fmt.Errorf("event %s: version %d, want 1", e.Type, e.V)
	case e.Run == "":
		return fmt.Errorf("event %s: no run", e.Type)
	case e.Seq < 0:
		return fmt.Errorf("event %s: seq %d", e.Type, e.Seq)
	case !bytes.HasPrefix(bytes.TrimSpace(e.Data), []byte("{")):
		return fmt.Errorf("event %s: the data is not an object", e.Type)
	}
	dec := json.NewDecoder(bytes.NewReader(e.Data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(reflect.New(reflect.TypeOf(fact)).Interface()); err != nil {
		return fmt.Errorf("event %s: %w", e.Type, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("event %s: something follows the data", e.Type)
	}
	return nil
}
