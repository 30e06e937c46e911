package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// version is the format of the files written here.
const version = 1

// documentLimit bounds a descriptor.json or state.json.
const documentLimit = 1 << 20

// A descriptorFile is descriptor.json.
type descriptorFile struct {
	V  int             `json:"v"`
	ID claybot.AgentID `json:"id"`
	claybot.Descriptor
	CreatedAt claybot.Time `json:"createdAt"`
}

// A stateFile is state.json.
type stateFile struct {
	V int `json:"v"`
	claybot.AgentState
	// Marker is where the conversation begins in history.jsonl.
	Marker *marker `json:"lastMarker,omitempty"`
	// Settings are claybot.Settings, null: none; absent in files of older versions.
	Settings json.RawMessage `json:"settings,omitempty"`
}

// extras are the members of a document that this version does not know. They
// are kept when the document is written anew.
type extras map[string]json.RawMessage

// A newerError refuses a file of a format from the future. Such a file is left
// as it is.
type newerError struct {
	file string
	v    int
}

func (e *newerError) Error() string {
	return fmt.Sprintf("%s has format %d and this claybot reads up to %d; use the newer claybot that wrote it",
		e.file, e.v, version)
}

func (e *newerError) Unwrap() error { return storage.ErrDamaged }

// encodeDocument returns doc as an indented JSON object that ends with the
// members of extra that doc has not.
func encodeDocument(doc any, extra extras) ([]byte, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if len(extra) > 0 {
		known, err := members(data)
		if err != nil {
			return nil, err
		}
		data = data[:len(data)-1] // every document has v, so a comma is right
		for _, name := range slices.Sorted(maps.Keys(extra)) {
			if known.has(name) {
				continue
			}
			key, err := json.Marshal(name)
			if err != nil {
				return nil, err
			}
			data = append(append(append(append(data, ','), key...), ':'), extra[name]...)
		}
		data = append(data, '}')
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// decodeDocument reads a document into doc, a pointer to a struct, and returns
// the members that doc does not know. It fails with a *newerError for a format
// from the future, and with any other error for damage.
func decodeDocument(file string, data []byte, doc any) (extras, error) {
	all, err := members(data)
	if err != nil {
		return nil, err
	}
	v := version
	if raw, ok := all["v"]; ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("format version: %w", err)
		}
	}
	if v > version {
		return nil, &newerError{file, v}
	}
	if v < 1 {
		return nil, fmt.Errorf("format version %d", v)
	}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, err
	}
	known, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	names, err := members(known)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return names.has(name) })
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

func members(data []byte) (extras, error) {
	var m extras
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("null instead of an object")
	}
	return m, nil
}

// has ignores case, as the decoding of known members does.
func (e extras) has(name string) bool {
	if _, ok := e[name]; ok {
		return true
	}
	for known := range e {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}
