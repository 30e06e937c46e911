// Package files keeps agents as directories of plain files: who an agent is,
// its settings, and its history. It implements storage.Agents,
// storage.Histories and storage.Files for one process on one machine.
//
//	<dir>/                      0700, every file 0600, whatever the umask
//	├── claybot.lock            flock; holds the pid of the process that has it
//	├── boots.json              storage.Boot of the process that has, or had, the directory
//	├── revoked.json            Revoked: what an older copy of the database must not approve again
//	├── unfinished              only while the directory is made as a copy of a store: nobody uses it
//	├── agents/<cuid2>/
//	│   ├── descriptor.json     {"v","id","type","createdAt", the fields of claybot.Descriptor}
//	│   ├── state.json          {"v", the fields of claybot.AgentState, "lastMarker", "settings", unknown keys kept}
//	│   ├── history.jsonl       one claybot.Record a line; the last members are "off" and "crc"
//	│   ├── attachments/<id>    files that people sent, each with its <id>.json
//	│   └── results/<call>.txt  tool results too long for history
//	├── agents/.new-<cuid2>     an agent that is being made, or a file that arrives; removed at Open
//	└── quarantine/             damaged bytes, at most 64 MiB, the oldest go first
//	    └── <cuid2>-<time>/     a deleted agent; stays until somebody removes it
//
// It guarantees: what a method confirmed survives kill -9 and power loss, as
// far as the disk honours fsync; nobody ever sees half a descriptor.json or
// state.json; history.jsonl is only appended to, and a line that an error or a
// crash cut short is removed before the next append; an append that failed
// left no record behind; damage costs the damaged line or file, never its
// neighbours and never the agent's identity.
//
// The "crc" of a history line is the CRC-32C of the line without that member
// and without the newline, as 8 lower-case hex digits. Lines without one, as
// written by hand, are accepted. "off" is the offset of the line in its file.
//
// Where a conversation begins (the newest start or reset) and how long its history is are
// kept outside of the history as well: in state.json and in Ends. The history is written
// first. Nothing before a recorded beginning is read, whatever became of its line;
// a recorded one that is older than the newest in the file does not count. What is
// gone, damaged, or shorter than it was is told once to the person and logged.
//
// The settings of an agent have their home in "settings" of state.json. The index has a
// copy of them, so that Open reads the files of those agents alone that have some. A copy
// that differs when the file is read becomes what the file says; a file without the
// member, as older versions wrote it, or with null, gets it from the copy.
//
// Locks. One gate per descriptor makes find-or-create one step; one gate per
// agent is held while its files are read or written, which is the order of its
// writes and the place where leases are checked. A gate is held across disk
// work on purpose and is left when the context ends; the mutexes inside are
// held for a few instructions only. Gates nest descriptor before agent.
//
// Only cmd and tests may import this package.
package files
