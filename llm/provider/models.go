package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/llm"
)

// listOf is the address of the list of models beside that of an operation. Azure has the list above its deployments.
func listOf(operation string) string {
	operation, query, asked := strings.Cut(operation, "?")
	for _, path := range [...]string{"/chat/completions", "/responses", "/messages"} {
		operation = strings.TrimSuffix(operation, path)
	}
	operation, _, _ = strings.Cut(operation, "/deployments/")
	operation += "/models"
	if asked {
		operation += "?" + query
	}
	return operation
}

// Models returns the names of the models that the provider lists, sorted. Its errors are those of
// Chat; that of a server without such a list has its status.
//
// OpenAI and Anthropic have GET /v1/models with {"data": [{"id": …}]}, of which the first page is
// enough; so have all servers that are named in llm.Presets, Ollama among them: platform.openai.com/docs/api-reference/models/list, docs.anthropic.com/en/api/models-list,
// read 2026-11-29.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	if c.URL == "" {
		return nil, llm.Failed(llm.Permanent, "the base URL is not set properly")
	}
	step, cancel := c.Within(ctx)
	defer cancel()
	x, broken := c.send(step, http.MethodGet, listOf(c.URL), nil, c.header("application/json", "application/json"))
	if broken != nil {
		return nil, broken
	}
	defer x.Close()
	if x.Status() != http.StatusOK {
		return nil, c.refusal(x).Error
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(x).Decode(&list); err != nil {
		return nil, &llm.Error{Class: llm.Permanent, Status: x.Status(), Text: "the server lists no models"}
	}
	names := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		if m.ID != "" && !strings.ContainsFunc(m.ID, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			names = append(names, m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
