package api_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

// client is the OpenAI library on a rig, with a token of its own.
func (r *rig) client(scope string) *openai.Client {
	r.Helper()
	cfg := openai.DefaultConfig(r.scoped("lib-"+scope, scope))
	cfg.BaseURL = "http://" + r.addr + "/v1"
	cfg.HTTPClient = r.http
	return openai.NewClientWithConfig(cfg)
}

func user(text string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: "user", Content: text}
}

func asking(model, thread string, all ...openai.ChatCompletionMessage) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{Model: model, User: thread, Messages: all, Temperature: 0.5, MaxCompletionTokens: 100}
}

func TestCompletion(t *testing.T) {
	r := start(t)
	c := r.client("operate")
	got, err := c.CreateChatCompletion(t.Context(), asking("claybot", "one", openai.ChatCompletionMessage{Role: "system", Content: "be brief"}, user("hello")))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != "re: hello" || got.Choices[0].Message.Role != "assistant" || got.Choices[0].FinishReason != "stop" ||
		got.Object != "chat.completion" || got.Model != "claybot" || got.Created == 0 || got.Usage.PromptTokens != 10 || got.Usage.CompletionTokens != 2 || got.Usage.TotalTokens != 12 ||
		got.Usage.CompletionTokensDetails == nil || got.Usage.CompletionTokensDetails.ReasoningTokens != 1 {
		t.Errorf("got %+v", got)
	}
	// The agent remembers: of a longer conversation only what is new is posted.
	more := asking("claybot", "one", user("hello"), openai.ChatCompletionMessage{Role: "assistant", Content: "re: hello"}, user("first"), user("second"))
	if got, err = c.CreateChatCompletion(t.Context(), more); err != nil || got.Choices[0].Message.Content != "re: first\n\nsecond" {
		t.Errorf("got %+v, %v", got, err)
	}
	run := strings.TrimPrefix(got.ID, "chatcmpl-")
	agent := r.run(run).AgentID
	if g := r.do("GET", "/agents/"+agent+"/history", ""); strings.Count(g.body, `"user_message"`) != 2 || strings.Contains(g.body, "be brief") {
		t.Errorf("history %s", g.body)
	}
	// Another thread is another agent; an agent may be named.
	if other, err := c.CreateChatCompletion(t.Context(), asking("claybot", "two", user("hello"))); err != nil || r.run(strings.TrimPrefix(other.ID, "chatcmpl-")).AgentID == agent {
		t.Errorf("another thread: %v", err)
	}
	named, err := c.CreateChatCompletion(t.Context(), asking("agent:"+agent, "", user("by name")))
	if err != nil || r.run(strings.TrimPrefix(named.ID, "chatcmpl-")).AgentID != agent {
		t.Errorf("by name: %+v, %v", named, err)
	}
	// A profile has threads of its own.
	night, err := c.CreateChatCompletion(t.Context(), asking("night", "one", user("hello")))
	if err != nil {
		t.Fatal(err)
	}
	var entry agentRow
	r.ask("GET", "/agents/"+r.run(strings.TrimPrefix(night.ID, "chatcmpl-")).AgentID, "", http.StatusOK, &entry)
	if entry.ID == agent || entry.Descriptor.Profile != "night" || entry.Descriptor.UserID != "lib-operate" {
		t.Errorf("of a profile: %+v", entry)
	}
	parts := openai.ChatCompletionRequest{Model: "claybot", Messages: []openai.ChatCompletionMessage{{
		Role: "user", MultiContent: []openai.ChatMessagePart{{Type: "text", Text: "a"}, {Type: "text", Text: "b"}},
	}}}
	if got, err := c.CreateChatCompletion(t.Context(), parts); err != nil || got.Choices[0].Message.Content != "re: a\nb" {
		t.Errorf("parts: %+v, %v", got, err)
	}
}

// read reads a stream to its end.
func read(s *openai.ChatCompletionStream) (text string, last openai.ChatCompletionStreamResponse, finish openai.FinishReason, err error) {
	defer s.Close()
	for {
		chunk, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return text, last, finish, nil
		}
		if err != nil {
			return text, last, finish, err
		}
		last = chunk
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			if c.FinishReason != "" {
				finish = c.FinishReason
			}
		}
	}
}

func (r *rig) streamed(c *openai.Client, req openai.ChatCompletionRequest) (string, openai.ChatCompletionStreamResponse, openai.FinishReason, error) {
	r.Helper()
	s, err := c.CreateChatCompletionStream(r.Context(), req)
	if err != nil {
		r.Fatal(err)
	}
	return read(s)
}

func TestStreamedCompletion(t *testing.T) {
	r := start(t)
	c := r.client("operate")
	long := strings.Repeat("a long answer, ", 400)
	r.mind.plan("tell", llmtest.Say(long))
	wait := claybot.ToolCall{ID: "c", Name: "wait", Args: `{"seconds":0.001}`}
	looks := llmtest.Use(wait)
	looks.Text = "Let me look."
	r.mind.plan("look", looks, llmtest.Say("There it is."))
	r.mind.plan("silent", llmtest.Say("NO_REPLY"))
	for in, want := range map[string]string{"tell": long, "look": "Let me look.\n\nThere it is.", "silent": "", "hello": "re: hello"} {
		req := asking("claybot", in, user(in))
		req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		text, last, finish, err := r.streamed(c, req)
		if err != nil || text != want || finish != "stop" || last.Usage == nil || last.Usage.TotalTokens == 0 || len(last.Choices) != 0 {
			t.Errorf("%s: %.80q (%d bytes), finish %q, last %+v, %v", in, text, len(text), finish, last, err)
		}
	}
	for in, want := range map[string]string{"tell": long, "look": "There it is.", "silent": ""} {
		got, err := c.CreateChatCompletion(t.Context(), asking("claybot", "again "+in, user(in)))
		if err != nil || got.Choices[0].Message.Content != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
}

// The beginning of an answer is seen while the rest is written.
func TestCompletionGrows(t *testing.T) {
	r := start(t)
	letGo := r.mind.hold("grow", true)
	s, err := r.client("operate").CreateChatCompletionStream(t.Context(), asking("claybot", "", user("please grow")))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for text == "" {
		chunk, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		text = chunk.Choices[0].Delta.Content
	}
	if want := "re: please grow"; text != want[:len(want)/2] {
		t.Errorf("the beginning is %q", text)
	}
	letGo()
	if rest, _, _, err := read(s); err != nil || text+rest != "re: please grow" {
		t.Errorf("%q and %q, %v", text, rest, err)
	}
}

// A question is an answer, and the next message of the thread answers it.
func TestCompletionAsks(t *testing.T) {
	r := start(t)
	c := r.client("operate")
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"Which colour?","type":"select","options":["red","green"]}`}), llmtest.Say("thanks"))
	text, _, finish, err := r.streamed(c, asking("claybot", "t", user("ask me")))
	if err != nil || finish != "stop" || text != "Which colour?\n- red\n- green" {
		t.Fatalf("%q, %q, %v", text, finish, err)
	}
	got, err := c.CreateChatCompletion(t.Context(), asking("claybot", "t", user("ask me"), openai.ChatCompletionMessage{Role: "assistant", Content: text}, user("green")))
	if err != nil || got.Choices[0].Message.Content != "thanks" {
		t.Errorf("%+v, %v", got, err)
	}
	if text, _, _, err = r.streamed(c, asking("claybot", "t2", user("ask me"))); err != nil {
		t.Fatal(err)
	}
	// What does not fit is told once; a second time it is a message of its own.
	blue := []openai.ChatCompletionMessage{user("ask me"), {Role: "assistant", Content: text}, user("blue")}
	told, err := c.CreateChatCompletion(t.Context(), asking("claybot", "t2", blue...))
	if err != nil || !strings.HasPrefix(told.Choices[0].Message.Content, "That does not fit: ") || !strings.HasSuffix(told.Choices[0].Message.Content, text) {
		t.Fatalf("%+v, %v", told, err)
	}
	run := strings.TrimPrefix(told.ID, "chatcmpl-")
	if got := r.run(run).State; got != "AWAITING" {
		t.Errorf("the run is %s", got)
	}
	again := append(blue, openai.ChatCompletionMessage{Role: "assistant", Content: told.Choices[0].Message.Content}, user("purple"))
	if text, _, _, err = r.streamed(c, asking("claybot", "t2", again...)); err != nil || text != "re: purple" {
		t.Errorf("streamed %q, %v", text, err)
	}
	if got := r.run(run).State; got != "CANCELED" {
		t.Errorf("the run is %s", got)
	}
}

// Several questions are answered one after another, or in lines.
func TestCompletionAsksSeveralThings(t *testing.T) {
	r := start(t)
	c := r.client("operate")
	r.mind.plan("ask me", llmtest.Use(claybot.ToolCall{ID: "q", Name: "ask_user", Args: `{"questions":[{"question":"How many?","key":"n","type":"number"},{"question":"Sure?","key":"sure","type":"boolean"}]}`}), llmtest.Say("thanks"))
	says := func(thread, text, want string) {
		t.Helper()
		got, _, _, err := r.streamed(c, asking("claybot", thread, user(text)))
		if err != nil || got != want {
			t.Errorf("%s: %q is answered with %q, %v; want %q", thread, text, got, err, want)
		}
	}
	says("one", "ask me", "How many?\n\nSure?")
	says("one", "3", "Sure?")
	says("one", "yes", "thanks")
	says("lines", "ask me", "How many?\n\nSure?")
	says("lines", "n: 3\nsure: no", "thanks")
	says("lines", "hello", "re: hello")
}

func TestCompletionFails(t *testing.T) {
	r := start(t)
	c := r.client("operate")
	r.mind.plan("fail", llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "the account is closed"}})
	status := func(err error) (int, string) {
		var e *openai.APIError
		if !errors.As(err, &e) {
			t.Errorf("no error of the API: %v", err)
			return 0, ""
		}
		code, _ := e.Code.(string)
		return e.HTTPStatusCode, code
	}
	for _, tc := range []struct {
		req    openai.ChatCompletionRequest
		status int
		code   string
	}{
		{asking("gpt", "", user("x")), 404, "model_not_found"},
		{asking("", "", user("x")), 404, "model_not_found"},
		{asking("agent:nobody", "", user("x")), 404, "not_found"},
		{asking("claybot", strings.Repeat("t", 201), user("x")), 400, "bad_request"},
		{asking("claybot", ""), 400, "bad_request"},
		{asking("claybot", "", user(" ")), 400, "bad_request"},
		{asking("claybot", "", user("x"), openai.ChatCompletionMessage{Role: "assistant", Content: "y"}), 400, "bad_request"},
		{openai.ChatCompletionRequest{Model: "claybot", N: 2, Messages: []openai.ChatCompletionMessage{user("x")}}, 400, "bad_request"},
		{openai.ChatCompletionRequest{Model: "claybot", Messages: []openai.ChatCompletionMessage{{Role: "user", MultiContent: []openai.ChatMessagePart{{Type: "image_url", ImageURL: &openai.ChatMessageImageURL{URL: "http://x"}}}}}}, 400, "bad_request"},
		{asking("claybot", "f", user("fail")), 400, "model_refused"},
	} {
		_, err := c.CreateChatCompletion(t.Context(), tc.req)
		if got, code := status(err); got != tc.status || code != tc.code {
			t.Errorf("%+v = %d %s (%v), want %d %s", tc.req.Model, got, code, err, tc.status, tc.code)
		}
	}
	_, _, _, err := r.streamed(c, asking("claybot", "g", user("fail")))
	if _, code := status(err); code != "model_refused" {
		t.Errorf("a stream of a run that fails ends with %v", err)
	}
	_, err = r.client("read").CreateChatCompletion(t.Context(), asking("claybot", "", user("x")))
	if got, _ := status(err); got != http.StatusForbidden {
		t.Errorf("with the scope read: %v", err)
	}
	r.refused("POST", "/v1/chat/completions", `{"model":"claybot","messages":[{"role":"user","content":7}]}`, 400, "bad_request", "content of a message")
	r.refused("POST", "/v1/chat/completions", `{"model":"claybot","messages":"x"}`, 400, "bad_request", "messages must be a list")
	r.refused("POST", "/v1/chat/completions", `{"model":"claybot","messages":[{"role":"user","content":}]}`, 400, "bad_request", "messages.content")
}

func TestCanceledCompletion(t *testing.T) {
	r := start(t)
	defer r.mind.hold("slow", true)()
	s, err := r.client("operate").CreateChatCompletionStream(t.Context(), asking("claybot", "", user("slow")))
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	r.ask("DELETE", "/agents/runs/"+strings.TrimPrefix(first.ID, "chatcmpl-"), "", http.StatusAccepted, nil)
	_, _, _, err = read(s)
	if err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("a stream of a canceled run ends with %v", err)
	}
}

// A client that goes away does not end the run; the same key finds it again.
func TestCompletionGoesOnWithoutItsClient(t *testing.T) {
	r := start(t)
	letGo := r.mind.hold("slow", true)
	body := `{"model":"claybot","stream":true,"messages":[{"role":"user","content":"slow"}]}`
	resp := r.open("POST", "/v1/chat/completions", body, "Idempotency-Key", "stainless/retry 1")
	for e := range events(resp.Body) {
		if strings.Contains(e.data, "re: ") {
			break
		}
	}
	resp.Body.Close()
	letGo()
	g := r.do("POST", "/v1/chat/completions", strings.Replace(body, "true", "false", 1), "Idempotency-Key", "stainless/retry 1")
	if g.code != http.StatusOK || !strings.Contains(g.body, "re: slow") {
		t.Errorf("again = %d %s", g.code, g.body)
	}
	var list struct{ Runs []runRow }
	r.ask("GET", "/agents/runs", "", http.StatusOK, &list)
	if len(list.Runs) != 1 || list.Runs[0].State != "SUCCEEDED" {
		t.Errorf("runs %+v", list.Runs)
	}
}

func TestModels(t *testing.T) {
	r := start(t)
	c := r.client("operate")
	agent := r.say("hello").Agent
	all, err := c.ListModels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range all.Models {
		ids = append(ids, m.ID)
	}
	if want := []string{"claybot", "default", "night", "agent:" + agent}; !slices.Equal(ids, want) {
		t.Errorf("models %v, want %v", ids, want)
	}
	for _, id := range ids {
		if m, err := c.GetModel(t.Context(), id); err != nil || m.ID != id || m.Object != "model" || m.OwnedBy != "claybot" {
			t.Errorf("%s: %+v, %v", id, m, err)
		}
	}
	for _, id := range []string{"gpt", "agent:nobody", "agent:"} {
		if _, err := c.GetModel(t.Context(), id); err == nil {
			t.Errorf("%s is a model", id)
		}
	}
}
