package workspace

import "slices"

// loginRoot is HOME while a login shell begins: no command can put a file there
// that the shell would read.
const loginRoot = "/"

// login reads what a login shell reads of the system, then becomes the shell of
// the command with its own HOME.
const login = `HOME=$1; export HOME; exec /bin/sh -c "$2"`

// fileVars make shells read a file when they begin.
var fileVars = []string{"ENV", "BASH_ENV"}

// FileVars are the variables that make shells read a file when they begin. No
// command may have them: the file could be one that an earlier command wrote.
func FileVars() []string { return slices.Clone(fileVars) }

// Argv is how a command is started whose HOME is to be home, and the HOME that it
// has to be started with. A shell begins as a login shell, so that what the system
// sets for everybody holds, and yet reads no file of the workspace: what ran
// earlier would have a part in what was approved since.
func (c Command) Argv(home string) (argv []string, start string) {
	if c.Shell == "" {
		return c.Args, home
	}
	return []string{"/bin/sh", "-lc", login, "/bin/sh", home, c.Shell}, loginRoot
}

// Home is the HOME of a command: what its variables say, else those of its
// workspace, the last of each, else dir.
func Home(dir string, lists ...[]Var) string {
	for _, v := range slices.Concat(lists...) {
		if v.Name == "HOME" {
			dir = v.Value
		}
	}
	return dir
}
