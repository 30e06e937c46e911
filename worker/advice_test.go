package worker

import (
	"testing"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

func TestAdvice(t *testing.T) {
	refused := func(text string) *runs.Error {
		return &runs.Error{Code: runs.CodeModel, Text: "model: " + text + " (HTTP 401)", Err: &llm.Error{Class: llm.Permanent, Status: 401, Text: text}}
	}
	for _, tt := range []struct {
		name string
		err  *runs.Error
		want string
	}{
		{"one model", refused("the provider refuses the key; check OPENAI_API_KEY"), "Cause: the provider refuses the key (HTTP 401).\nFix: check OPENAI_API_KEY."},
		{"a reason", refused("the provider refuses the key; check OPENAI_API_KEY: Incorrect API key provided"), "Cause: the provider refuses the key (HTTP 401): Incorrect API key provided.\nFix: check OPENAI_API_KEY."},
		{
			"several models", refused("no model answered (fast: the provider failed: no; slow: the provider refuses the key; check OPENAI_API_KEY: no)"),
			"Cause: no model answered (fast: the provider failed: no; slow: the provider refuses the key; check OPENAI_API_KEY: no) (HTTP 401).\nFix: ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := adviceOn(texts.Voice{}, tt.err, "model.base_url")
			if len(got) < len(tt.want) || got[:len(tt.want)] != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
