package openai

import (
	"encoding/base64"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot/llm"
)

// A wirePart is a part of the content of a message that has pictures.
type wirePart struct {
	Type     string     `json:"type"` // text or image_url
	Text     string     `json:"text,omitempty"`
	ImageURL *wireImage `json:"image_url,omitempty"`
}

type wireImage struct {
	URL string `json:"url"`
}

// resultPictures stands before the pictures of results, which are messages of
// the user, as results have no pictures in this API.
const resultPictures = "(pictures of the results above)"

func appendChat(out []wireMessage, chat []llm.Message, pictures bool) []wireMessage {
	var waiting []wirePart // pictures of results
	for i, m := range chat {
		text := m.Content
		if !pictures {
			text = llm.WithoutImages(m)
		}
		w := wireMessage{Role: m.Role, ToolCallID: m.CallID}
		if text != "" {
			w.Content = text
		}
		for _, call := range m.Calls {
			w.ToolCalls = append(w.ToolCalls, wireCall{
				ID:       call.ID,
				Type:     sdk.ToolTypeFunction,
				Function: sdk.FunctionCall{Name: call.Name, Arguments: call.Args},
			})
		}
		if pictures && len(m.Images) > 0 {
			if m.Role == llm.RoleTool {
				waiting = append(waiting, parts("", m.Images)...)
			} else {
				w.Content = parts(text, m.Images)
			}
		}
		out = append(out, w)
		if len(waiting) > 0 && (i+1 == len(chat) || chat[i+1].Role != llm.RoleTool) {
			content := append([]wirePart{{Type: "text", Text: resultPictures}}, waiting...)
			out = append(out, wireMessage{Role: llm.RoleUser, Content: content})
			waiting = nil
		}
	}
	return out
}

func parts(text string, images []llm.Image) []wirePart {
	out := make([]wirePart, 0, len(images)+1)
	if text != "" {
		out = append(out, wirePart{Type: "text", Text: text})
	}
	for _, i := range images {
		url := "data:" + i.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		out = append(out, wirePart{Type: "image_url", ImageURL: &wireImage{URL: url}})
	}
	return out
}
