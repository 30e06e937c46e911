package dashboard

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func (b *board) questionRoutes() []web.Route {
	return []web.Route{
		b.act("POST /ui/questions/{id}", web.Operate, b.answer),
	}
}

// An asked question is shown as a form.
type asked struct {
	viewer
	storage.OpenQuestion
}

// fewOptions is up to how many options are shown side by side.
const fewOptions = 7

// Few reports whether all options can be shown at once.
func (a asked) Few() bool { return len(a.Options) <= fewOptions }

// Chosen reports whether an option is the answer when nobody gives one.
func (a asked) Chosen(option string) bool { return a.Default != "" && a.Default == option }

// openQuestions are those of an agent that wait, or of one of its runs.
func (b *board) openQuestions(r *http.Request, agent claybot.AgentID, run claybot.RunID) ([]asked, error) {
	all, err := b.Desk.OpenQuestions(r.Context(), agent)
	if err != nil {
		return nil, err
	}
	var open []asked
	for _, q := range all {
		if run == "" || q.Run == run {
			open = append(open, asked{viewerOf(r), q})
		}
	}
	return open, nil
}

// answer answers one question; several values are those of a list.
func (b *board) answer(w http.ResponseWriter, r *http.Request) error {
	value := strings.Join(r.PostForm["value"], ", ")
	if r.PostForm.Has("list") && value != "" { // options may have commas of their own
		list, _ := json.Marshal(r.PostForm["value"]) // strings always marshal
		value = string(list)
	}
	err := b.Desk.AnswerQuestion(r.Context(), r.PathValue("id"), value, web.User(r), claybot.ViaWeb)
	if err != nil {
		return err
	}
	b.done(w, "Answered. The run goes on.")
	return nil
}
