package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/claybot/claybot/storage"
)

// refLimit is the most bytes that are looked up.
const refLimit = 2000

// A whyView is what became of the messages that were asked about.
type whyView struct {
	viewer
	Ref     string
	Self    string // the query of this page
	Stories []storyView
	Asked   bool
}

// Title implements titled.
func (whyView) Title() string { return "Why?" }

func (b *healthPages) whyOf(r *http.Request) (any, error) {
	v := whyView{viewer: viewerOf(r), Ref: strings.ToValidUTF8(strings.TrimSpace(r.URL.Query().Get("q")), "")}
	if len(v.Ref) > refLimit {
		v.Ref = strings.ToValidUTF8(v.Ref[:refLimit], "")
	}
	if v.Ref == "" {
		return v, nil
	}
	v.Asked, v.Self = true, url.Values{"q": {v.Ref}}.Encode()
	stories, err := b.system.Why(r.Context(), v.Ref)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	for _, s := range stories {
		v.Stories = append(v.Stories, viewStory(s))
	}
	return v, nil
}
