package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
)

// maxArgs is the most bytes that the arguments of one call may have.
const maxArgs = 1 << 20

// maxComplaint bounds what an error repeats of the arguments.
const maxComplaint = 500

var nameForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// Each agent has tools of its own, made anew for each of its runs, with schemas that
// are the same for all: a type is inferred once, and the text that comes of it is
// resolved once. Schemas of others (MCP servers) are not kept: there is no end to them.
var (
	inferredSchemas sync.Map // reflect.Type: func() (json.RawMessage, error)
	resolvedSchemas sync.Map // string, a text in inferredSchemas: func() (*schema, error)
)

// inferred returns the schema of a struct. The bytes are shared: nobody may change them.
func inferred(in reflect.Type) (json.RawMessage, error) {
	once, ok := inferredSchemas.Load(in)
	if !ok {
		once, _ = inferredSchemas.LoadOrStore(in, sync.OnceValues(func() (json.RawMessage, error) {
			made, err := jsonschema.ForType(in, nil)
			if err != nil {
				return nil, err
			}
			raw, err := json.Marshal(made)
			if err == nil {
				resolvedSchemas.Store(string(raw), sync.OnceValues(func() (*schema, error) { return resolve(raw) }))
			}
			return raw, err
		}))
	}
	return once.(func() (json.RawMessage, error))()
}

// compile returns what arguments of a schema are checked with.
func compile(raw json.RawMessage) (*schema, error) {
	if once, ok := resolvedSchemas.Load(string(raw)); ok {
		return once.(func() (*schema, error))()
	}
	return resolve(raw)
}

// checkArgs returns the arguments of a call in their canonical form, or an error
// that names the field at fault in words for the model.
func checkArgs(s *schema, call claybot.ToolCall) (json.RawMessage, error) {
	if len(call.Args) > maxArgs {
		return nil, fmt.Errorf("invalid arguments: %d bytes, the limit is %d", len(call.Args), maxArgs)
	}
	args := json.RawMessage(bytes.TrimSpace(call.Input()))
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return nil, fmt.Errorf("invalid arguments: %s", jsonComplaint(args, err))
	}
	args, err := canonical(args)
	if err != nil {
		return nil, fmt.Errorf("invalid arguments: %w", err)
	}
	if err := s.Validate(v); err != nil {
		return nil, fmt.Errorf("invalid arguments: %s", schemaComplaint(err))
	}
	return args, nil
}

// CheckSchema reports a text that is no JSON schema, and one that cannot be checked in bounded time: with a
// reference to another document or, without a property or an item in between, back to itself.
func CheckSchema(raw json.RawMessage) error {
	_, err := resolve(raw)
	return err
}

// CheckJSON reports, in words for a model, why a text is no JSON that matches a schema; without
// a schema, any object does.
func CheckJSON(raw json.RawMessage, text string) error {
	s, err := resolve(raw)
	if err != nil {
		return fmt.Errorf("invalid schema: %w", err)
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return errors.New(jsonComplaint(json.RawMessage(text), err))
	}
	if err := s.Validate(v); err != nil {
		return errors.New(schemaComplaint(err))
	}
	return nil
}

// jsonComplaint tells a cut text from a wrong one.
func jsonComplaint(args json.RawMessage, err error) string {
	dec := json.NewDecoder(bytes.NewReader(args))
	var v json.RawMessage
	if cut := dec.Decode(&v); errors.Is(cut, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("the JSON is cut off after %d bytes", len(args))
	}
	return "not JSON: " + err.Error()
}

// schemaComplaint turns the validator's "validating root: validating
// /properties/a/properties/b: type: ..." into "field a.b: type: ...".
func schemaComplaint(err error) string {
	msg, path := err.Error(), ""
	for {
		rest, ok := strings.CutPrefix(msg, "validating ")
		if !ok {
			break
		}
		at, rest, ok := strings.Cut(rest, ": ")
		if !ok {
			break
		}
		path, msg = at, rest
	}
	msg = strings.Replace(msg, "<invalid reflect.Value>", "null", 1)
	if len(msg) > maxComplaint {
		msg = strings.ToValidUTF8(msg[:maxComplaint], "") + "..."
	}
	if field := fieldName(path); field != "" {
		return "field " + field + ": " + msg
	}
	return msg
}

func fieldName(path string) string {
	var b strings.Builder
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := 0; i < len(parts); i++ {
		switch {
		case parts[i] == "properties" && i+1 < len(parts):
			i++
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(parts[i])
		case parts[i] == "items":
			b.WriteString("[]")
		}
	}
	return b.String()
}
