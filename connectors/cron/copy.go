package cron

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
)

// What is remembered of tasks lies in a mark where one process has a data directory,
// and beside the tasks where nodes share a Tree. Whoever copies one to the other has
// FactsOfMark and MarkOfFacts.

// Mark is the mark that keeps what is remembered of the tasks of a directory.
const Mark = factsMark

// goneFolder has what is remembered of tasks whose folder is not there, for who goes
// back to a directory. It is put aside: nodes do not read it.
const goneFolder = treeFolder + "/.gone"

// IsFacts reports whether a file of a Tree has what is remembered of a task.
func IsFacts(p string, body []byte) bool {
	dir, name := path.Split(p)
	dir = path.Clean(dir)
	if (dir != goneFolder || !strings.HasSuffix(name, ".json")) &&
		(path.Dir(dir) != treeFolder || strings.HasPrefix(path.Base(dir), ".") || name != factsFile) {
		return false
	}
	var of struct{ UID string }
	return json.Unmarshal(body, &of) == nil && of.UID != ""
}

// FactsOfMark makes the files by which nodes remember of the mark and of the files of
// the Tree, which have the tasks. A mark that cannot be read makes none.
func FactsOfMark(mark string, files map[string][]byte) map[string][]byte {
	var facts map[string]json.RawMessage
	if json.Unmarshal([]byte(mark), &facts) != nil {
		return nil
	}
	made := make(map[string][]byte)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		dir, name := path.Split(p)
		if dir = path.Clean(dir); path.Dir(dir) != treeFolder || strings.HasPrefix(path.Base(dir), ".") || name != taskFile {
			continue
		}
		d, _, _ := readDefinition(string(files[p]), time.UTC) // of a task with a mistake the uid is enough
		if fact, ok := facts[d.uid]; ok && d.uid != "" {
			if body, ok := shareFact(d.uid, fact); ok {
				made[dir+"/"+factsFile] = body
				delete(facts, d.uid)
			}
		}
	}
	for uid, fact := range facts {
		if body, ok := shareFact(uid, fact); ok && claybot.AgentID(uid).Validate() == nil {
			made[goneFolder+"/"+uid+".json"] = body
		}
	}
	return made
}

// shareFact adds the uid of its task to a fact. All its members are kept.
func shareFact(uid string, fact json.RawMessage) ([]byte, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(fact, &members) != nil || members == nil {
		return nil, false
	}
	id, err := json.Marshal(uid)
	if err != nil {
		return nil, false
	}
	members["uid"] = id
	body, err := json.Marshal(members)
	return body, err == nil
}

// MarkOfFacts makes the mark of the files of which IsFacts is true.
func MarkOfFacts(files map[string][]byte) string {
	facts := make(map[string]map[string]json.RawMessage)
	for _, body := range files {
		var members map[string]json.RawMessage
		var uid string
		if json.Unmarshal(body, &members) != nil || json.Unmarshal(members["uid"], &uid) != nil {
			continue // what is remembered begins anew, as it would at a node
		}
		delete(members, "uid")
		facts[uid] = members
	}
	b, err := json.Marshal(facts)
	if err != nil {
		return "{}" // it was read as JSON right here
	}
	return string(b)
}
