package service

import (
	"fmt"
	"strings"
)

// escaped are the characters that have a meaning in quoted words of a unit: systemd.service(5),
// COMMAND LINES, and systemd.unit(5), SPECIFIERS.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$")

// specifiers are those of them that have a meaning outside of command lines.
var specifiers = strings.NewReplacer("%", "%%")

// word returns a word of a command line.
func word(s string) string { return `"` + escaped.Replace(s) + `"` }

// Systemd returns the unit of a service that reads its variables from the file at env. The
// unit restarts claybot after a crash, but not after a clean end, a configuration that
// cannot start or a damaged database (exit codes 2, 3 and 5), which a restart does not mend.
// It limits what the process may do as far as workspaces on this machine still work.
func (s Service) Systemd(env string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written by claybot service install, which replaces it. Put changes into a drop-in: systemctl edit %s", Name)
	line("[Unit]")
	line("Description=claybot, which connects AI agents to chats")
	line("Documentation=https://github.com/claybot/claybot")
	if s.User != "" {
		line("Wants=network-online.target")
		line("After=network-online.target docker.service postgresql.service")
	}
	line("StartLimitIntervalSec=0") // claybot itself slows down a crash loop
	line("\n[Service]")
	line("Type=notify")
	words := []string{word(s.Program)}
	for _, a := range s.Args {
		words = append(words, word(a))
	}
	line("ExecStart=%s", strings.Join(words, " "))
	line("ExecReload=/bin/kill -HUP $MAINPID")
	line("WorkingDirectory=%s", specifiers.Replace(s.Dir))
	if s.User != "" {
		line("User=%s", s.User)
	}
	line("EnvironmentFile=-%s", specifiers.Replace(env))
	line("Environment=%s", assignment("PATH="+s.Path))
	line("Restart=on-failure")
	line("RestartSec=1")
	line("RestartPreventExitStatus=2 3 5")
	line("TimeoutStartSec=infinity") // a large migration takes its time
	line("TimeoutStopSec=45")        // runs in progress get 30 s
	line("KillMode=mixed")
	line("LimitNOFILE=65536")
	line("UMask=0077")
	line("NoNewPrivileges=yes")
	line("LockPersonality=yes")
	line("RestrictRealtime=yes")
	line("RestrictSUIDSGID=yes")
	line("SystemCallArchitectures=native")
	if s.User != "" {
		line("ProtectSystem=full")
		line("ProtectClock=yes")
		line("ProtectKernelModules=yes")
	}
	line("\n[Install]")
	if s.User != "" {
		line("WantedBy=multi-user.target")
	} else {
		line("WantedBy=default.target")
	}
	return b.String()
}

// assignment returns a quoted assignment of Environment=, in which a dollar has no meaning.
func assignment(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s) + `"`
}
