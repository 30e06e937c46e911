package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/web"
)

// A settingsView is the form of an agent's settings.
type settingsView struct {
	viewer
	profiles.SettingsView
	ID claybot.AgentID
}

// Debounce is the agent's own setting, empty for none.
func (v settingsView) Debounce() any {
	if v.Own.DebounceMS == nil {
		return ""
	}
	return *v.Own.DebounceMS
}

func (v settingsView) DebounceNow() any {
	if v.Now.DebounceMS == nil {
		return "0"
	}
	return *v.Now.DebounceMS
}

func (settingsView) BusyChoices() []string {
	return []string{string(inbox.Wait), string(inbox.InjectAfterTools)}
}

func (settingsView) BufferChoices() []string {
	return []string{string(inbox.AllTogether), string(inbox.OneByOne)}
}

// OwnTools reports whether the agent has a selection of tools, and Uses whether a
// tool is in it.
func (v settingsView) OwnTools() bool { return v.Own.Tools != nil }

func (v settingsView) Uses(tool string) bool {
	return v.Own.Tools == nil || slices.Contains(v.Own.Tools, tool)
}

func (v settingsView) EngineNow() string { return engineWords(v.Now.Engine) }

// engineWords says what an engine does.
func engineWords(name string) string { return strings.TrimSuffix(name+": "+engines[name], ": ") }

func (b *agentPages) readSettings(r *http.Request) (settingsView, error) {
	s, err := b.settings.Settings(r.Context(), agentOf(r))
	return settingsView{viewerOf(r), s, agentOf(r)}, err
}

// configure replaces the settings of an agent by those of the form.
func (b *agentPages) configure(r *http.Request) (string, error) {
	s, faults := settingsOf(r.PostForm)
	if len(faults) > 0 {
		return "", faulty(faults)
	}
	now, err := b.settings.Settings(r.Context(), agentOf(r))
	if err != nil {
		return "", err
	}
	s.Approved = stillApproved(now.Own.Approved, r.PostForm["shown"], r.PostForm["approved"])
	s.Permissions = now.Own.Permissions
	err = b.settings.Configure(r.Context(), agentOf(r), s)
	if wrong, ok := errors.AsType[*questions.AnswerError](err); ok {
		err = faulty(wrong.Faults)
	}
	return doneSaved, err
}

// stillApproved are the tools without approval after a form was sent: those that are
// checked, and those that were approved after the form was shown.
func stillApproved(now, shown, checked []string) []string {
	return slices.DeleteFunc(slices.Clone(now), func(tool string) bool {
		return slices.Contains(shown, tool) && !slices.Contains(checked, tool)
	})
}

// faulty refuses settings, with a sentence for each field by its name in JSON.
func faulty(faults map[string]string) error {
	var all []string
	for field, why := range faults {
		all = append(all, cmp.Or(fieldLabels[field], field)+": "+why)
	}
	slices.Sort(all)
	return &web.Problem{Status: http.StatusBadRequest, Code: "refused", Message: strings.Join(all, " "), Fix: nothingChanged, Fields: faults}
}

// settingsOf reads the form of an agent's settings: an empty field leaves it to the
// profile. The system checks the bounds.
func settingsOf(f url.Values) (s claybot.Settings, faults map[string]string) {
	faults = make(map[string]string)
	s = claybot.Settings{
		Model: strings.TrimSpace(f.Get("model")), Engine: f.Get("engine"),
		Prompt:   strings.ReplaceAll(strings.TrimSpace(f.Get("prompt")), "\r\n", "\n"),
		WhenBusy: f.Get("whenBusy"), ProcessBuffer: f.Get("processBuffer"),
	}
	whole := func(name string) *int64 {
		text := strings.TrimSpace(f.Get(name))
		if text == "" {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // ParseInt gives the nearest one, which is out of bounds
			faults[name] = needsNumber
		}
		return &n
	}
	if steps := whole("maxSteps"); steps != nil {
		s.MaxSteps = int(*steps)
	}
	s.DebounceMS = whole("debounceMs")
	if f.Get("ownTools") != "" {
		if s.Tools = f["tools"]; len(s.Tools) == 0 {
			faults["tools"] = needsTool
		}
	}
	return s, faults
}
