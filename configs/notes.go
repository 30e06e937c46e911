package configs

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Notes says what an agent may do with notes and skills.
type Notes struct {
	Off bool // no tools for notes, and no list of them in the prompt
	// Global: the agent may change the notes that agents of all people read.
	Global bool
	// Skills are those that it may use, by name; nil means all that are allowed.
	Skills []string
}

// DefaultSkillsDir is where skills lie, below the data directory.
const DefaultSkillsDir = "skills"

func noteKeys() []key[draft] {
	return []key[draft]{
		text("browser", func(r *reader, at place, v string, p *draft) {
			on, ok := r.flag(at, v, "on", "off")
			store(&p.Workspace.Browser, on, ok)
		}),
		text("notes", func(r *reader, at place, v string, p *draft) {
			on, ok := r.flag(at, v, "on", "off")
			store(&p.Notes.Off, !on, ok)
		}),
		text("global_notes", func(r *reader, at place, v string, p *draft) {
			// Whatever is not understood means the narrow one.
			p.Notes.Global = false
			write, ok := r.flag(at, v, "write", "read")
			store(&p.Notes.Global, write, ok)
		}),
		{"skills", setSkills},
	}
}

var skillName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// setSkills reads which skills a profile has. A list that is not understood means
// none, as they tell agents what to do.
func setSkills(r *reader, at place, n *yaml.Node, p *draft) {
	p.Notes.Skills = []string{}
	items, ok := r.list(at, n)
	if !ok {
		return
	}
	for _, it := range items {
		if !skillName.MatchString(it.text) {
			r.warn(it.at, "%s is not the name of a skill, which has 1 to 64 of a-z, 0-9 and -; ignored", quote(it.text))
			continue
		}
		p.Notes.Skills = appendNew(p.Notes.Skills, it.text)
	}
}
