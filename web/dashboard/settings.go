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

// A limitField is a field of the form with a list of an agent's permissions. Value is the
// agent's own setting and Now what applies, with the limits of its creators.
type limitField struct{ Name, Label, Hint, Value, Now string }

// Limits are the fields of the agent's permissions.
func (v settingsView) Limits() []limitField {
	var own, now claybot.Permissions
	if p := v.Own.Permissions; p != nil {
		own = *p
	}
	if p := v.Now.Permissions; p != nil {
		now = *p
	}
	return []limitField{
		{"readDirs", labelReads, hintDirs, listed(own.ReadDirs), listed(now.ReadDirs)},
		{"writeDirs", labelWrites, hintDirs, listed(own.WriteDirs), listed(now.WriteDirs)},
		{"workingDir", labelBegins, hintBegins, own.WorkingDir, now.WorkingDir},
		{"routes", labelRoutes, hintRoutes, listed(own.Routes), listed(now.Routes)},
		{"deny", labelDenied, hintDenied, strings.Join(own.Tools.Deny, ", "), strings.Join(now.Tools.Deny, ", ")},
	}
}

// Offline reports whether the agent's own setting takes the web away, and OfflineNow whether
// it has none.
func (v settingsView) Offline() bool { return v.Own.Permissions != nil && v.Own.Permissions.Offline() }

// OfflineNow is described at Offline.
func (v settingsView) OfflineNow() bool {
	return v.Now.Permissions != nil && v.Now.Permissions.Offline()
}

// noneListed stands in a field for a list of nothing: an empty field sets no limit.
const noneListed = "-"

// listed writes a list into a field.
func listed(list []string) string {
	if list != nil && len(list) == 0 {
		return noneListed
	}
	return strings.Join(list, ", ")
}

// listOf reads a list from a field.
func listOf(text string) []string {
	if strings.TrimSpace(text) == noneListed {
		return []string{}
	}
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// permissionsOf reads the permissions in the form; the system checks them.
func permissionsOf(f url.Values) *claybot.Permissions {
	p := claybot.Permissions{
		WorkingDir: strings.TrimSpace(f.Get("workingDir")),
		ReadDirs:   listOf(f.Get("readDirs")), WriteDirs: listOf(f.Get("writeDirs")), Routes: listOf(f.Get("routes")),
		Tools: claybot.ToolPermissions{Deny: listOf(f.Get("deny"))},
	}
	if f.Get("offline") != "" {
		p.Web = new(false)
	}
	return &p
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
	if s.Permissions == nil {
		s.Permissions = now.Own.Permissions
	}
	err = b.settings.Configure(r.Context(), agentOf(r), s, web.CallerOf(r).Name)
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
	if f.Get("permissions") != "" { // else the form does not show them
		s.Permissions = permissionsOf(f)
	}
	if f.Get("ownTools") != "" {
		if s.Tools = f["tools"]; len(s.Tools) == 0 {
			faults["tools"] = needsTool
		}
	}
	return s, faults
}
