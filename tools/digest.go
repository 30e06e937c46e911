package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// Digest is the hex SHA-256 of an action: the tool, its arguments, the workspace
// in which it runs (empty for none) and the agent that runs it. Arguments that
// say the same have the same digest, however their JSON is written; numbers
// count as they are written. Arguments that are no JSON, or name a member twice,
// count byte for byte, and so do those that are nested too deep.
func Digest(agent claybot.AgentID, workspace string, call claybot.ToolCall) string {
	action := map[string]any{"tool": call.Name, "workspace": workspace, "agent": agent}
	if args, err := canonical(call.Input()); err == nil {
		action["args"] = args
	} else {
		action["raw"] = []byte(call.Args)
	}
	b, _ := json.Marshal(action) // strings and checked JSON always marshal
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

const maxDepth = 100

// canonical is the one form of a JSON value: compact, members sorted, numbers as
// written. A member that is there twice is an error: readers differ about which
// one counts.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(whole))
	dec.UseNumber()
	var b bytes.Buffer
	if err := writeCanonical(&b, dec, 0); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeCanonical writes the next value of dec, whose JSON is known to be valid.
func writeCanonical(b *bytes.Buffer, dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return writeObject(b, dec, depth+1)
	case json.Delim('['):
		return writeArray(b, dec, depth+1)
	}
	b.Write(scalar(t))
	return nil
}

func writeArray(b *bytes.Buffer, dec *json.Decoder, depth int) error {
	b.WriteByte('[')
	for i := 0; dec.More(); i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeCanonical(b, dec, depth); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	_, err := dec.Token()
	return err
}

func writeObject(b *bytes.Buffer, dec *json.Decoder, depth int) error {
	type member struct {
		name  string
		value []byte
	}
	var all []member
	seen := make(map[string]bool)
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // names are strings
		if seen[name] {
			return fmt.Errorf("the member %.80q is given twice", name)
		}
		seen[name] = true
		var value bytes.Buffer
		if err := writeCanonical(&value, dec, depth); err != nil {
			return err
		}
		all = append(all, member{name, value.Bytes()})
	}
	slices.SortFunc(all, func(x, y member) int { return strings.Compare(x.name, y.name) })
	b.WriteByte('{')
	for i, m := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(scalar(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	_, err := dec.Token()
	return err
}

func scalar(v any) []byte {
	if n, ok := v.(json.Number); ok {
		return []byte(n)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // what a decoder made always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
