package documents

import (
	"path"
	"strings"
)

// A Copier knows where the files lie that Filesystem keeps in a folder for each agent,
// and Folder among the documents that nodes share. It is for whoever copies one store
// to the other.
type Copier struct{}

// Document is the document that a file of the folder of an agent becomes; ok is false
// for what is none: marks, and files that are being written.
func (Copier) Document(agent, file string) (scope, name string, ok bool) {
	if rest, aside := strings.CutPrefix(file, undoFolder+"/"); aside {
		of, name, found := strings.Cut(rest, "/")
		return "agent/" + of + undoStore, name, found && plainName.MatchString(of) && !strings.Contains(rest, reserved)
	}
	return "agent/" + agent + "/store", "folder/" + file, !strings.HasPrefix(file, reserved) && !strings.Contains(file, "/"+reserved)
}

// Taint is the mark of a file with untrusted content: a file in the folder, and a
// document of the same scope.
func (Copier) Taint(file string) (mark, name string) {
	return path.Join(markFolder, sum(file)), markDocs + file
}

// File is the file that a document becomes; ok is false when it stays a document.
func (Copier) File(scope, name string) (agent, file string, ok bool) {
	agent, isStore := strings.CutSuffix(scope, "/store")
	agent, isAgent := strings.CutPrefix(agent, "agent/")
	file, isFile := strings.CutPrefix(name, "folder/")
	return agent, file, isStore && isAgent && isFile && plainName.MatchString(agent)
}
