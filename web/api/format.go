package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/tools"
)

// schemaLimit is the maximum size of a JSON schema in bytes: it is part of the prompt.
const schemaLimit = 32 << 10

// A chatFormat is response_format of chat completions.
type chatFormat struct {
	Type   string       `json:"type"`
	Schema answerSchema `json:"json_schema,omitzero"`
}

// An answerSchema is the schema of an answer.
type answerSchema struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
}

// A textFormat is text of the responses protocol.
type textFormat struct {
	Format *struct {
		Type string `json:"type"`
		answerSchema
	} `json:"format,omitempty"`
	Verbosity any `json:"verbosity,omitempty" doc:"Ignored."`
}

// formatOf returns the format that a field of a request asks for; nil: a text.
func formatOf(field, kind string, s answerSchema) (*claybot.AnswerFormat, error) {
	switch kind {
	case "", "text":
		return nil, nil
	case "json_object":
		return &claybot.AnswerFormat{}, nil
	case "json_schema":
	default:
		return nil, badParam(field, fmt.Sprintf("Unknown format %.40q.", kind), "Use text, json_object or json_schema.")
	}
	switch {
	case len(s.Schema) == 0 || s.Schema[0] != '{':
		return nil, badParam(field, "A format of the type json_schema needs a schema, which is an object.", "")
	case len(s.Schema) > schemaLimit:
		return nil, badParam(field, fmt.Sprintf("The schema has %d bytes; the limit is %d.", len(s.Schema), schemaLimit), "")
	case len(s.Name) > 64 || s.Name != "" && !keyForm.MatchString(s.Name):
		return nil, badParam(field, "The name of a schema must be 1 to 64 letters, digits and . _ : -", "")
	}
	if err := tools.CheckSchema(s.Schema); err != nil {
		return nil, badParam(field, fmt.Sprintf("The schema is invalid: %.300s.", err.Error()), "References to other documents are not supported.")
	}
	return &claybot.AnswerFormat{Name: s.Name, Schema: s.Schema, Strict: s.Strict}, nil
}

// formats rejects a format for an agent whose engine has none.
func (a *completions) formats(r *http.Request, to agentsystem.Address, format *claybot.AnswerFormat) error {
	if format == nil {
		return nil
	}
	engine, err := a.starter.engineOf(r.Context(), to)
	if err == nil && engine != "" && engine != claybot.EngineReact {
		err = bad(fmt.Sprintf("The engine %.40s of this agent answers with text only.", engine), "Omit the format of the answer, or use an agent with the engine react.")
	}
	return err
}
