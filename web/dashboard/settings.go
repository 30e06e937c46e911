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

// Debounce is what the agent's own setting says, empty for none.
func (v settingsView) Debounce() any {
	if v.Own.DebounceMS == nil {
		return ""
	}
	return *v.Own.DebounceMS
}

// DebounceNow is what applies.
func (v settingsView) DebounceNow() any {
	if v.Now.DebounceMS == nil {
		return "0"
	}
	return *v.Now.DebounceMS
}

// BusyChoices and BufferChoices are what may be chosen.
func (settingsView) BusyChoices() []string {
	return []string{string(inbox.Wait), string(inbox.InjectAfterTools)}
}

func (settingsView) BufferChoices() []string {
	return []string{string(inbox.AllTogether), string(inbox.OneByOne)}
}

// OwnTools reports whether the agent has tools of its own choice, and Uses
// whether it may use one.
func (v settingsView) OwnTools() bool { return v.Own.Tools != nil }

func (v settingsView) Uses(tool string) bool {
	if v.Own.Tools == nil {
		return true
	}
	return slices.Contains(v.Own.Tools, tool)
}

// EngineNow is the engine that applies, in words.
func (v settingsView) EngineNow() string { return engineWords(v.Now.Engine) }

// engineWords says what an engine does.
func engineWords(name string) string {
	if about := engines[name]; about != "" {
		return name + ": " + about
	}
	return name
}

// engines are what the engines do, by name.
var engines = map[string]string{
	claybot.EngineReact: "acts step by step", claybot.EnginePlan: "plans, asks, then acts", claybot.EngineExplore: "explores an application",
	claybot.EngineUndo: "takes back what a run did",
}

func (b *agentPages) agentSettings(r *http.Request) (any, error) { return b.readSettings(r) }

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
	err = b.settings.Configure(r.Context(), agentOf(r), s)
	if wrong, ok := errors.AsType[*questions.AnswerError](err); ok {
		return "", faulty(wrong.Faults)
	}
	if err != nil {
		return "", err
	}
	return "Saved. It applies from now on.", nil
}

// stillApproved are the tools that need no approval after a form was sent: those
// that were left checked, and those that the form did not show, because they
// were approved meanwhile.
func stillApproved(now, shown, checked []string) []string {
	return slices.DeleteFunc(slices.Clone(now), func(tool string) bool {
		return slices.Contains(shown, tool) && !slices.Contains(checked, tool)
	})
}

// faulty refuses settings and says why at each field, which has the name that
// the setting has in JSON.
func faulty(faults map[string]string) error {
	return &web.Problem{
		Status: http.StatusBadRequest, Code: "refused", Message: labelled(faults), Fix: "Nothing was changed.", Fields: faults,
	}
}

// fieldLabels are what the form calls the settings.
var fieldLabels = map[string]string{
	"model": "Model", "prompt": "The prompt", "maxSteps": "The most steps", "debounceMs": "The wait for more messages",
	"whenBusy": "A message while it works", "processBuffer": "Several that wait", "tools": "Tools", "engine": "The engine", "approved": "Tools without approval",
}

// labelled are faults of settings as sentences with the names of the form.
func labelled(faults map[string]string) string {
	var all []string
	for field, why := range faults {
		all = append(all, cmp.Or(fieldLabels[field], field)+": "+why)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// settingsOf reads the form of an agent's settings: an empty field means as the
// profile says. What is within bounds the system decides.
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
			faults[name] = "must be a whole number; leave it empty for what the profile says."
		}
		return &n
	}
	if steps := whole("maxSteps"); steps != nil {
		s.MaxSteps = int(*steps)
	}
	s.DebounceMS = whole("debounceMs")
	if f.Get("ownTools") != "" {
		if s.Tools = f["tools"]; len(s.Tools) == 0 {
			faults["tools"] = "choose at least one, or let the profile say which."
		}
	}
	return s, faults
}
