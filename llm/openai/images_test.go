package openai

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// The head of a picture of one pixel.
var png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU")

// Pictures arrive, those of results in a message of the user behind them all. A
// server that takes none gets them described in words, once and for all; one that
// refuses a single picture, for that call.
func TestImages(t *testing.T) {
	picture := llm.Image{MIMEType: "image/png", Data: png, Name: "cat.png"}
	r := ask("what is this?")
	r.Messages[0].Images = []llm.Image{picture}
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.RoleAssistant, Calls: twoCalls},
		llm.Message{Role: llm.RoleTool, CallID: twoCalls[0].ID, Content: "a screen", Images: []llm.Image{picture, picture}},
		llm.Message{Role: llm.RoleTool, CallID: twoCalls[1].ID, Content: "nothing"},
		llm.Message{Role: llm.RoleUser, Content: "and?"})
	for _, tt := range []struct {
		fault        openaitest.Fault
		calls, again int // requests of the first and of a second call
	}{
		{"", 1, 1},
		{openaitest.FaultNoImages, 2, 1},
		{openaitest.FaultNoImagesRoute, 2, 1},
		{openaitest.FaultBadImage, 2, 2},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			s, c := serve(t, openaitest.Config{Reply: func(openaitest.Request) openaitest.Reply {
				return openaitest.Reply{Text: "ok", Fault: tt.fault}
			}}, Config{SystemFallback: FallbackNever})
			for i, want := range []int{tt.calls, tt.again} {
				before := s.Calls()
				if _, err := c.Chat(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if n := s.Calls() - before; n != want {
					t.Errorf("call %d took %d requests, want %d", i, n, want)
				}
			}
			requests := s.Requests()
			last := requests[len(requests)-1].Messages
			if tt.fault == "" {
				if len(last) != 6 || len(last[0].Images) != 1 || last[4].Content != resultPictures || len(last[4].Images) != 2 || string(last[4].Images[0].Data) != string(png) {
					t.Errorf("got %+v", last)
				}
				return
			}
			if len(last) != 5 || !strings.Contains(last[0].Content, `"cat.png"`) || strings.Count(last[2].Content, "cannot be shown") != 2 {
				t.Errorf("no line stands in the place of the pictures: %+v", last)
			}
		})
	}
}

// Words about images teach something only where pictures were sent.
func TestImagesAreLearnedFromImages(t *testing.T) {
	for body, want := range map[string][2]uint32{
		"this model does not support image input":         {fieldImages, 0},
		"Invalid image data: vision models need a JPEG":   {0, fieldImages},
		"image_url is too large":                          {0, fieldImages},
		"messages.1.content: Input should be a valid URL": {0, 0},
	} {
		p := parseProblem(400, []byte(`{"error":{"message":"`+body+`"}}`))
		if always, once := p.refused(); always != want[0] || once != want[1] {
			t.Errorf("%s: got %b %b", body, always, once)
		}
	}
	s, c := serve(t, openaitest.Config{Reply: func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Fault: openaitest.FaultBadRequest}
	}}, Config{})
	if _, err := c.Chat(t.Context(), ask("x")); err == nil || c.Refused() != 0 || s.Calls() != 1 {
		t.Errorf("got %v after %d calls, learned %b", err, s.Calls(), c.Refused())
	}
}

func TestMaxTokens(t *testing.T) {
	for _, tt := range []struct{ configured, wanted, want int64 }{{0, 0, 0}, {50, 0, 50}, {50, 70, 70}, {0, -1, 0}} {
		s, c := serve(t, openaitest.Config{}, Config{MaxTokens: tt.configured})
		r := ask("x")
		r.MaxTokens = tt.wanted
		if _, err := c.Chat(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := s.Requests()[0].MaxTokens; int64(got) != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}
