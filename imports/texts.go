package imports

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/platforms"
)

// AddPrompt makes the prompt of files of the workspace, in their order. Secrets in it are masked, as the
// configuration has none. clean, if any, prepares the text of a file.
func (f *Find) AddPrompt(d *Dir, clean func(string) string, names ...string) {
	var parts []string
	size := 0
	for _, name := range names {
		text := d.Text(f, name)
		if clean != nil {
			text = strings.TrimSpace(clean(text))
		}
		if text == "" {
			continue
		}
		masked := f.masked(name, text)
		if size += len(masked); size > maxText {
			f.Leave(name, fmt.Sprintf("the prompt would have more than %d KiB", maxText>>10))
			continue
		}
		parts, f.PromptOf = append(parts, masked), append(f.PromptOf, name)
	}
	f.Prompt = Verbatim(strings.Join(parts, "\n\n"))
}

// masked returns a text for agents without the secrets in it, which are left.
func (f *Find) masked(name, text string) string {
	text, kinds := platforms.MaskSecrets(text)
	if len(kinds) > 0 {
		f.Leave(name+": "+strings.Join(kinds, ", "), "a text for agents holds no secrets; the rest of it is imported")
	}
	return text
}

// Verbatim returns a text as a template that renders as exactly that text.
func Verbatim(text string) string {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "{%") && !strings.Contains(text, "{#") {
		return text
	}
	// A word of the text that would end the block stands in two of them.
	return "{% raw %}" + strings.ReplaceAll(text, "endraw", "end{% endraw %}{% raw %}raw") + "{% endraw %}"
}

// AddNotes adds texts of the workspace as notes, with secrets masked.
func (f *Find) AddNotes(d *Dir, names ...string) {
	if len(names) > maxFiles {
		f.Leave("notes", fmt.Sprintf("there are more than %d; the first ones are imported", maxFiles))
		names = names[:maxFiles]
	}
	for _, name := range names {
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '$' || r == '\\' || r == utf8.RuneError }) {
			f.Leave(name, "its name cannot be that of a note")
			continue
		}
		if text := d.Text(f, name); text != "" {
			f.Notes = append(f.Notes, Note{f.Slug + "/" + name, f.masked(name, text)})
		}
	}
}

// AddSkills adds folders of skills of a directory.
func (f *Find) AddSkills(d *Dir, folders ...string) {
	for _, folder := range folders {
		if !d.Folder(folder) {
			if d.Has(folder) {
				f.Leave(folder, "it is a link that leads out of the directory, or no directory")
			}
			continue
		}
		if full := filepath.Join(d.Path, folder); !slices.Contains(f.Skills, full) {
			f.Skills = append(f.Skills, full)
		}
		for _, name := range d.Names(folder) {
			if info, err := d.root.Lstat(path.Join(folder, name)); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
				f.Leave("skill "+oneWord(name), "its folder is a link; copy it into the folder of skills")
			}
		}
	}
}

// Checklist adds the list of HEARTBEAT.md as a task of the heartbeat. Headings alone are no task.
func (f *Find) Checklist(text, every, hours string) {
	if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "<!--") && strings.Trim(line, "-*[] `") != ""
	}) {
		return
	}
	f.Heartbeat = &connectors.HeartbeatTask{
		ID: f.Slug, Title: f.Program + " checklist", Every: every, ActiveHours: hours, Enabled: true,
		Prompt: f.masked("HEARTBEAT.md", text) + "\n\nIf nothing needs attention, answer NO_REPLY.",
	}
}
