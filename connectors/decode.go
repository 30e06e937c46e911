package connectors

import (
	"encoding/json"
	"errors"
)

// Decode decodes JSON of a platform leniently: a field of an unexpected type stays empty and does not
// affect others.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return nil
	}
	return err
}
