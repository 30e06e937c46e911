package configs

import "go.yaml.in/yaml/v3"

// Notes says what an agent may do with notes and skills.
type Notes struct {
	Off bool     // no tools for notes, and no list of them in the prompt
	_   struct{} `key:"notes" class:"narrowing" kind:"notes"`
	// Global: the agent may change the notes that agents of all people read.
	Global bool `key:"global_notes" class:"narrowing" kind:"global notes" bad:"false" off:"notes of all people are read only"`
	// Skills are those that it may use, by name; nil means all that are allowed.
	Skills []string `key:"skills" class:"narrowing" kind:"skills" bad:"[]" off:"there are no skills"`
}

// DefaultSkillsDir is the default directory of skills, relative to the data directory.
const DefaultSkillsDir = "skills"

func setNotes(r *reader, at place, v string, p *draft) {
	on, err := (key{words: "on,off"}).truth(v)
	if err != nil {
		r.refuse(at, err)
		return
	}
	p.Notes.Off = !on
}

// setSkills reads which skills a profile has. A list that is not understood means
// none, as they tell agents what to do.
func setSkills(r *reader, at place, n *yaml.Node, skills *[]string) {
	items, _ := r.list(at, n)
	*skills = valid(r, items, forms["skill"].parse)
}
