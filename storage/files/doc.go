// Package files stores agents as directories of plain files: identity, settings
// and history. It implements storage.Agents, storage.Histories and
// storage.Files for one process on one machine.
//
//	<dir>/                      0700, every file 0600, whatever the umask
//	├── claybot.lock            flock; holds the pid of the process that has it
//	├── boots.json              storage.Boot of the process that has, or had, the directory
//	├── revoked.json            Revoked: what an older copy of the database must not approve again
//	├── unfinished              only while the directory is made as a copy of a store: it cannot be used yet
//	├── agents/<cuid2>/
//	│   ├── descriptor.json     {"v","id","type","createdAt", the fields of claybot.Descriptor}
//	│   ├── state.json          {"v", the fields of claybot.AgentState, "lastMarker", "settings", unknown keys kept}
//	│   ├── history.jsonl       one claybot.Record a line; the last members are "off" and "crc"
//	│   ├── attachments/<id>    files that people sent, each with its <id>.json
//	│   └── results/<call>.txt  tool results too long for history
//	├── agents/.new-<cuid2>     an agent that is being made, or a file that arrives; removed at Open
//	└── quarantine/             damaged bytes, at most 64 MiB, the oldest go first
//	    └── <cuid2>-<time>/     a deleted agent; stays until it is removed by hand
//
// It guarantees: the effect of a method that returned nil survives kill -9 and
// power loss, if the disk honours fsync; descriptor.json and state.json are
// replaced atomically; history.jsonl is append-only but for what PruneHistories removes, and a line that an error
// or a crash truncated is removed before the next append; a failed append
// leaves no record; damage affects only the damaged line or file, never its
// neighbours and never the agent's identity.
//
// The "crc" of a history line is the CRC-32C of the line without that member
// and without the newline, as 8 lower-case hex digits. Lines without one, as
// written by hand, are accepted. "off" is the offset of the line in its file, before
// anything was removed at the beginning of that, see PruneHistories.
//
// The start of a conversation (the newest start or reset) and the length of its history
// are also stored outside of the history: in state.json and in Ends. The history is
// written first. Nothing before a recorded start is read, even if its line is damaged; a
// recorded start that is older than the newest one in the file is ignored. Lost, damaged
// and truncated histories are logged and reported once to the user.
//
// The settings of an agent are stored in "settings" of state.json. The index has a copy,
// so that Open only reads the files of agents with settings. If the copy differs from the
// file, it is replaced; a file without the member, as older versions wrote it, or with
// null, gets it from the copy.
//
// Locks. One gate per descriptor makes find-or-create atomic; one gate per
// agent is held while its files are read or written, which orders its writes
// and is where leases are checked. A gate may be held during disk I/O, and
// waiting for it ends with the context; the mutexes are held only briefly.
// Gates nest descriptor before agent.
//
// Only cmd and tests may import this package.
package files
