// Package profiles knows how each agent behaves: by the profile that its descriptor gets
// from the configuration, and by what was changed for that agent alone, such as its model,
// its tools, its step limit and the approvals that a person gave for good.
//
// It guarantees that a change applies to the next decision and is stored before it does.
package profiles

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
)

// The bounds of an agent's own settings.
const (
	maxOwnSteps    = 1000
	maxOwnDebounce = time.Hour
	maxOwnPrompt   = 100_000 // bytes
	maxApproved    = 200     // rules
	maxRule        = 1000    // bytes
)

// A Profile is how the agents of one kind behave.
type Profile struct {
	Name     string
	Off      string // why each run of its agents fails: a setting of it is bad; empty: none is
	Engine   string // "react" when empty
	Policy   inbox.Policy
	Deadline time.Duration // of a whole run; 2 h
	Model    string        // for people to read, as are Address, Prompt and MaxSteps
	Models   []string      // that people who are no operators may choose; none: they may not choose
	SendTo   []string      // chats that its agents may write into besides those of their person, as connector:channel
	Address  string        // the setting that says where the model is
	Prompt   string
	MaxSteps int
	// Forget makes every run begin with its own messages only.
	Forget bool
	// Progress sends texts that come together with tool calls as messages of
	// their own.
	Progress bool
	// Unsent: what its agents say in runs of the engine react is not sent; they send with tools.
	Unsent bool
	// Acknowledge are the marks of messages.
	Acknowledge Acknowledge
	// Reactions are what reactions of people to messages mean.
	Reactions Reactions
	// VoiceReplies says which replies are spoken as well: VoiceReply, VoiceAlways or none.
	VoiceReplies string
	// Respond is to which messages of groups its agents respond; empty: RespondMention.
	Respond string
	// Shared says that all members of a group have one agent; otherwise each has their own.
	Shared bool
	// Context is how many earlier messages of a group come with a message to an agent; nil:
	// ContextOfThreads in threads whose platform keeps their messages, otherwise none.
	Context *int
}

// ContextOfThreads is how many earlier messages of a thread come with a message by default.
const ContextOfThreads = 20

// Acknowledge are the emoji that tell on a message of a person how far its answer has come;
// an empty one shows nothing.
type Acknowledge struct {
	Received, Working, Done, Failed string
}

// All returns the emoji in the order of a run.
func (a Acknowledge) All() []string { return []string{a.Received, a.Working, a.Done, a.Failed} }

// Reactions are what emoji reactions of people to messages mean.
type Reactions struct {
	Feedback bool     // 👍 and 👎 are feedback
	Stop     []string // an emoji, or a name of the platform
	Approve  []string
}

// A Meaning is what a reaction means.
type Meaning string

// The meanings of reactions.
const (
	MeansNothing Meaning = ""
	MeansUp      Meaning = "up"
	MeansDown    Meaning = "down"
	MeansStop    Meaning = "stop"
	MeansApprove Meaning = "approve"
)

// Meaning returns what an emoji means, by any of its names.
func (r Reactions) Meaning(names []string) Meaning {
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(emoji string) bool { return slices.Contains(names, emojiName(emoji)) })
	}
	switch {
	case has(r.Stop...):
		return MeansStop
	case has(r.Approve...):
		return MeansApprove
	case r.Feedback && has("👍"):
		return MeansUp
	case r.Feedback && has("👎"):
		return MeansDown
	}
	return MeansNothing
}

// Rated reports whether 👍 and 👎 are feedback.
func (r Reactions) Rated() bool {
	return r.Meaning([]string{"👍"}) == MeansUp && r.Meaning([]string{"👎"}) == MeansDown
}

// emojiName is how connectors name an emoji that a person configured.
func emojiName(emoji string) string {
	return strings.Trim(strings.ReplaceAll(emoji, "\ufe0f", ""), ":")
}

// Which replies are spoken as well.
const (
	VoiceReply  = "reply"  // to voice messages
	VoiceAlways = "always" // each
)

// To which messages of groups agents respond.
const (
	RespondMention = "mention" // that mention the bot or answer it
	RespondThread  = "thread"  // and further ones of threads in which an agent takes part
	RespondAll     = "all"     // of people with access
	RespondOff     = "off"     // none
)

// A SettingsView is how one agent is set.
type SettingsView struct {
	Profile string           `json:"profile"`
	Now     claybot.Settings `json:"now"` // what applies
	Own     claybot.Settings `json:"own"` // what was changed for this agent alone
	Models  []string         `json:"models"`
	Engines []string         `json:"engines"`
	Tools   []string         `json:"tools"` // all that its profile allows
}

// ownSettings are the agents that an operator has set apart from their
// profiles: few, and asked for at every decision.
type ownSettings struct {
	saving sync.Mutex // held from the check of a change until it applies

	mu      sync.RWMutex
	all     map[claybot.AgentID]claybot.Settings
	changes int // by this process
}

// load reads what is stored, of other nodes, too. What this process changes
// meanwhile counts.
func (o *ownSettings) load(ctx context.Context, settings storage.Settings) error {
	for {
		o.mu.RLock()
		changes := o.changes
		o.mu.RUnlock()
		all, err := settings.AgentSettings(ctx)
		if err != nil {
			return fmt.Errorf("read the settings of agents: %w", err)
		}
		if o.replace(all, changes) {
			return nil
		}
	}
}

// replace takes settings over that were read, unless some were changed since.
func (o *ownSettings) replace(all map[claybot.AgentID]claybot.Settings, changes int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changes != changes {
		return false
	}
	o.all = all
	return true
}

func (o *ownSettings) of(id claybot.AgentID) claybot.Settings {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.all[id]
}

func (o *ownSettings) set(id claybot.AgentID, s claybot.Settings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = make(map[claybot.AgentID]claybot.Settings)
	}
	o.all[id] = s
	o.changes++
}

// forget takes the settings of an agent away that is gone.
func (o *ownSettings) forget(id claybot.AgentID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, id)
	o.changes++
}

// OwnSettings are what was changed for one agent alone.
func (s *Profiles) OwnSettings(id claybot.AgentID) claybot.Settings { return s.settings.of(id) }

// Of is how an agent behaves now: its profile, and above it what was
// changed for it alone.
func (s *Profiles) Of(id claybot.AgentID, d claybot.Descriptor) Profile {
	return s.profileWith(d, s.settings.of(id))
}

func (s *Profiles) profileWith(d claybot.Descriptor, own claybot.Settings) Profile {
	p := s.Profile(d)
	p.Model, p.Engine = cmp.Or(s.modelOf(p, own), p.Model), cmp.Or(own.Engine, p.Engine)
	p.Policy.WhenBusy = cmp.Or(inbox.WhenBusy(own.WhenBusy), p.Policy.WhenBusy)
	p.Policy.ProcessBuffer = cmp.Or(inbox.ProcessBuffer(own.ProcessBuffer), p.Policy.ProcessBuffer)
	if own.DebounceMS != nil {
		p.Policy.Debounce = time.Duration(*own.DebounceMS) * time.Millisecond
	}
	return p
}

// InForce is the state of an agent with what its profile and its own settings say now.
func (s *Profiles) InForce(a claybot.Agent, own claybot.Settings) claybot.AgentState {
	p, st := s.profileWith(a.Descriptor, own), a.State
	st.Engine, st.Memory = cmp.Or(p.Engine, claybot.EngineReact), claybot.MemoryOn
	if p.Forget {
		st.Memory = claybot.MemoryOff
	}
	st.Provider = &claybot.Provider{Profile: p.Name, Model: p.Model}
	if b := st.Background; b != nil {
		st.Provider.Model = cmp.Or(s.modelOf(s.Profile(a.Descriptor), own), b.Model, p.Model)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	limits, err := s.permitted(ctx, a, own)
	if err != nil {
		s.Log.Warn("failed to read the permissions of an agent's creators", "agent", a.ID, "err", err)
	}
	limits.Tools.Allow = s.allowed(a, limits)
	st.Permissions = &limits
	return st
}

// ReloadSettings reads the settings of agents again after a change in the store.
func (s *Profiles) Load(ctx context.Context) error { return s.settings.load(ctx, s.Index) }

// WaitOf returns how long the messages of an agent may be held back.
func (s *Profiles) WaitOf(id claybot.AgentID, d claybot.Descriptor) storage.Wait {
	return s.Of(id, d).Policy.Wait()
}

// Settings are those that apply to an agent, and those of its own;
// storage.ErrNotFound.
func (s *Profiles) Settings(ctx context.Context, id claybot.AgentID) (SettingsView, error) {
	if _, err := s.Index.IndexedAgentByID(ctx, id); err != nil {
		return SettingsView{}, err
	}
	if err := s.Refresh(ctx); err != nil { // who reads them may be about to change them
		return SettingsView{}, err
	}
	agent, err := s.Agents.Agent(ctx, id)
	if err != nil {
		return SettingsView{}, fmt.Errorf("read agent %s: %w", id, err)
	}
	p, own := s.Of(id, agent.Descriptor), s.settings.of(id).Clone() // the caller may change it
	limits, err := s.permitted(ctx, agent, own)
	if err != nil {
		return SettingsView{}, err
	}
	debounce := p.Policy.Debounce.Milliseconds()
	v := SettingsView{Profile: p.Name, Own: own, Now: claybot.Settings{
		Model: p.Model, Prompt: cmp.Or(own.Prompt, p.Prompt), MaxSteps: cmp.Or(own.MaxSteps, p.MaxSteps),
		Engine: cmp.Or(p.Engine, claybot.EngineReact), Approved: slices.Clone(own.Approved), DebounceMS: &debounce, WhenBusy: string(p.Policy.WhenBusy), ProcessBuffer: string(p.Policy.ProcessBuffer),
	}}
	v.Engines = s.Engines()
	if s.Models != nil {
		v.Models = s.Models(agent)
	}
	if s.Tools != nil {
		v.Tools = s.Tools(agent)
		v.Now.Tools = s.allowed(agent, limits)
	}
	if limits.Tools.Allow = nil; !limits.IsZero() {
		v.Now.Permissions = &limits // the allowed tools are in Tools
	}
	return v, nil
}

// Configure replaces the settings of an agent; they apply at once, also to the
// messages that wait. by is who changes them, for the log. storage.ErrNotFound; an
// AnswerError names what is wrong, and nothing is changed then.
func (s *Profiles) Configure(ctx context.Context, id claybot.AgentID, own claybot.Settings, by string) error {
	s.settings.saving.Lock()
	defer s.settings.saving.Unlock()
	now, err := s.Settings(ctx, id)
	if err != nil {
		return err
	}
	own, faults := now.checked(own)
	if s.CheckPrompt != nil {
		if err := s.CheckPrompt(own.Prompt); err != nil {
			faults["prompt"] = fmt.Sprintf("cannot be used: %v.", err)
		}
	}
	if len(faults) > 0 {
		return &questions.AnswerError{Faults: faults}
	}
	own.ApprovedBy, own.ModelChoice = approvedBy(now.Own, own.Approved), choiceAfter(now.Own, own)
	if err := s.Index.SaveAgentSettings(ctx, id, own); err != nil {
		return fmt.Errorf("save the settings of %s: %w", id, err)
	}
	s.settings.set(id, own)
	s.recordSettings(id, by, now.Own, own)
	return s.Changed(ctx, id)
}

// recordSettings logs each setting that differs, with its values before and after; none is that of the profile. A prompt
// is a text, and no text is logged.
func (s *Profiles) recordSettings(id claybot.AgentID, by string, before, after claybot.Settings) {
	was, is := settingsByName(before), settingsByName(after)
	names := slices.Sorted(maps.Keys(was))
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case bytes.Equal(was[name], is[name]):
		case name == "prompt":
			s.Log.Info("agent setting changed", "agent", id, "setting", name, "by", by)
		default:
			s.Log.Info("agent setting changed", "agent", id, "setting", name, "before", string(was[name]), "after", string(is[name]), "by", by)
		}
	}
}

// settingsByName are the settings that are set, as JSON. What is kept about them is left out.
func settingsByName(s claybot.Settings) map[string]json.RawMessage {
	s.ApprovedBy, s.ModelChoice = nil, nil
	all := make(map[string]json.RawMessage)
	b, _ := json.Marshal(s) // it always can be
	_ = json.Unmarshal(b, &all)
	return all
}

// checked returns settings as they are stored, with what is wrong with them, by their JSON
// names.
func (v SettingsView) checked(own claybot.Settings) (claybot.Settings, map[string]string) {
	own, wrong := v.permissions(own)
	faults := v.faults(own)
	if wrong != "" {
		faults["permissions"] = wrong
	}
	return own, faults
}

// faults says what is wrong with settings, by their JSON names.
func (v SettingsView) faults(own claybot.Settings) map[string]string {
	faults := make(map[string]string)
	check := func(ok bool, field, why string) {
		if !ok {
			faults[field] = why
		}
	}
	models := "must be one of the configured models: " + strings.Join(v.Models, ", ") + "."
	if len(v.Models) == 0 {
		models = "cannot be chosen: no model is configured, so the demo model answers."
	}
	check(own.Model == "" || slices.Contains(v.Models, own.Model), "model", models)
	check(own.Engine == "" || slices.Contains(v.Engines, own.Engine), "engine", fmt.Sprintf("must be one of %v.", v.Engines))
	check(len(own.Approved) <= maxApproved, "approved", fmt.Sprintf("must have at most %d rules.", maxApproved))
	for _, rule := range own.Approved {
		check(len(rule) <= maxRule, "approved", fmt.Sprintf("has a rule of more than %d bytes.", maxRule))
	}
	check(len(own.Prompt) <= maxOwnPrompt, "prompt", fmt.Sprintf("must have at most %d bytes.", maxOwnPrompt))
	check(own.MaxSteps >= 0 && own.MaxSteps <= maxOwnSteps, "maxSteps", fmt.Sprintf("must be within 1 and %d, or 0 for that of the profile.", maxOwnSteps))
	if own.DebounceMS != nil {
		check(*own.DebounceMS >= 0 && *own.DebounceMS <= maxOwnDebounce.Milliseconds(), "debounceMs", fmt.Sprintf("must be within 0 and %d.", maxOwnDebounce.Milliseconds()))
	}
	busy := []string{"", string(inbox.Wait), string(inbox.InjectAfterTools)}
	check(slices.Contains(busy, own.WhenBusy), "whenBusy", "must be wait or injectAfterTools.")
	buffer := []string{"", string(inbox.AllTogether), string(inbox.OneByOne)}
	check(slices.Contains(buffer, own.ProcessBuffer), "processBuffer", "must be allTogether or oneByOne.")
	for _, name := range own.Tools {
		check(slices.Contains(v.Tools, name), "tools", fmt.Sprintf("%.64q is not a tool of this agent.", name))
	}
	return faults
}

// Forget drops the settings of an agent that was deleted.
func (s *Profiles) Forget(id claybot.AgentID) { s.settings.forget(id) }
