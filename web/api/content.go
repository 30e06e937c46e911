package api

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/claybot/claybot/web"
)

// A content is that of a message: a string or a list of parts.
type content struct {
	text  string
	files []web.FileGiven
	err   error // of a part that is not supported; nothing is wrong while the agent knows the message
}

// A part is one part of the content of a message, in either protocol.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Image is a URL, or in chat completions an object with it.
	Image    json.RawMessage `json:"image_url"`
	FileID   string          `json:"file_id"`
	FileURL  string          `json:"file_url"`
	FileData string          `json:"file_data"`
	Name     string          `json:"filename"`
	File     *struct {
		ID   string `json:"file_id"`
		Data string `json:"file_data"`
		Name string `json:"filename"`
	} `json:"file"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case b[0] == '"':
		return json.Unmarshal(b, &c.text)
	}
	var parts []part
	if err := json.Unmarshal(b, &parts); err != nil {
		return bad("The content of a message must be a string or a list of parts.", "")
	}
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, p.Text)
			continue
		case "refusal": // of an earlier answer
			continue
		}
		f, err := p.file()
		c.files, c.err = append(c.files, f), cmp.Or(c.err, err)
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// file returns the file that a part is.
func (p part) file() (f web.FileGiven, err error) {
	id, data, at := p.FileID, p.FileData, p.FileURL
	switch p.Type {
	case "image_url", "input_image":
		if at, err = p.image(); err != nil {
			return f, err
		}
		f.Name = "image"
	case "file", "input_file":
		if f.Name = p.Name; p.File != nil {
			id, data, f.Name = p.File.ID, p.File.Data, p.File.Name
		}
	default:
		return f, bad(fmt.Sprintf("Unsupported part of type %.40q; text, images and files are supported.", p.Type), "Send only these.")
	}
	switch {
	case id != "":
		return f, bad("file_id is not supported.", "Send the content as a data: URL.")
	case data == "" && !strings.HasPrefix(at, "data:"):
		return f, bad("claybot fetches no URL of a file or an image.", "Send the content as a data: URL.")
	case data == "":
		data = at
	}
	f.MIMEType, f.Data, err = dataOf(data)
	if err == nil && len(f.Data) == 0 {
		err = bad("A file or image is empty.", "")
	}
	if f.Name == "image" || f.Name == "" {
		f.Name = nameOf(f.Name, f.MIMEType)
	}
	return f, err
}

// image returns the URL of an image.
func (p part) image() (at string, err error) {
	var nested struct {
		URL string `json:"url"`
	}
	switch raw := bytes.TrimSpace(p.Image); {
	case len(raw) == 0 || string(raw) == "null":
	case raw[0] == '{':
		err = json.Unmarshal(raw, &nested)
	default:
		err = json.Unmarshal(raw, &nested.URL)
	}
	if err != nil {
		err = bad("image_url must be a data: URL.", "")
	}
	return nested.URL, err
}

// dataOf returns the content of a data: URL, or of base64 alone, and its type.
func dataOf(s string) (kind string, data []byte, err error) {
	rest, isURL := strings.CutPrefix(s, "data:")
	kind, body, comma := strings.Cut(rest, ",")
	if !isURL || !comma {
		kind, body = "", rest
	}
	kind, coded := strings.CutSuffix(kind, ";base64")
	if isURL && !coded {
		if body, err = url.PathUnescape(body); err == nil {
			return kind, []byte(body), nil
		}
	} else if data, err = base64.StdEncoding.DecodeString(body); err == nil {
		return kind, data, nil
	}
	return "", nil, bad("A file or image is no valid base64.", "Send it as data:<type>;base64,<content>.")
}

// endings are the extensions of files without a name.
var endings = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "application/pdf": ".pdf", "text/plain": ".txt"}

func nameOf(base, kind string) string {
	if base == "" {
		base = "file"
	}
	if t, _, err := mime.ParseMediaType(kind); err == nil {
		base += endings[t]
	}
	return base
}
