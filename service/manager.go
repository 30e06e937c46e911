package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ErrNone is of a machine without a service manager that can be used.
var ErrNone = errors.New("no service manager")

// ErrNotInstalled is of a service that is not there.
var ErrNotInstalled = errors.New("no service is installed")

// A Manager installs the service and controls it by the service manager of a machine or of
// one user. Its methods run the manager's own commands, whose output goes to Out and Err.
type Manager struct {
	System   bool // of the machine, otherwise of this user
	Out, Err io.Writer
	macOS    bool
	unit     string // path of the unit or agent
	env      string // path of the environment file
}

// New returns the manager of this machine, or of this user.
func New(system bool, out, errs io.Writer) (*Manager, error) {
	m := &Manager{System: system, Out: out, Err: errs, macOS: runtime.GOOS == "darwin"}
	if m.System && !m.macOS {
		m.unit, m.env = "/etc/systemd/system/"+Name+".service", "/etc/"+Name+"/service.env"
		return m, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("the home directory is unknown: %w", err)
	}
	if m.macOS { // a daemon of the machine would need a user of its own
		m.System, m.unit = false, filepath.Join(home, "Library/LaunchAgents", Label+".plist")
		return m, nil
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(home, ".config")
	}
	m.unit, m.env = filepath.Join(dir, "systemd/user", Name+".service"), filepath.Join(dir, Name, "service.env")
	return m, nil
}

// Text returns the unit of a service, without its variables.
func (m *Manager) Text(s Service) string {
	if m.macOS {
		s.Env = nil
		return s.Launchd()
	}
	return s.Systemd(m.env)
}

// Probe fails with ErrNone unless the manager answers.
func (m *Manager) Probe(ctx context.Context) error {
	name, args := "systemctl", m.scoped("show", "--property=Version")
	if m.macOS {
		name, args = "launchctl", []string{"print", m.domain()}
	}
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%w: this machine has no %s", ErrNone, name)
	}
	said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err == nil {
		return nil
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return fmt.Errorf("%w: %s %s: %w: %s", ErrNone, name, strings.Join(args, " "), err, line)
}

// scoped adds the flag of the user's own manager.
func (m *Manager) scoped(args ...string) []string {
	if m.System {
		return args
	}
	return append([]string{"--user"}, args...)
}

// domain is the domain of launchd in which agents of this user live.
func (m *Manager) domain() string { return "gui/" + strconv.Itoa(os.Getuid()) }

// run runs a command of the manager. It needs no terminal.
func (m *Manager) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = m.Out, m.Err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

func (m *Manager) systemctl(ctx context.Context, args ...string) error {
	return m.run(ctx, "systemctl", m.scoped(args...)...)
}

// Installed reports whether the service is there.
func (m *Manager) Installed() bool {
	_, err := os.Lstat(m.unit)
	return !errors.Is(err, fs.ErrNotExist)
}

// Installation is what Install has written.
type Installation struct {
	Unit      string   // path of the unit or agent
	Env       string   // path of the environment file; empty where the unit has the variables
	Variables []string // names of the variables of the service, sorted
	Kept      []string // those of them that it had before and s does not name
}

// Write writes the files of a service, which it replaces. Variables that an earlier
// installation has and s does not name are kept.
func (m *Manager) Write(s Service) (Installation, error) {
	if m.env == "" {
		done := Installation{Unit: m.unit, Variables: slices.Sorted(maps.Keys(s.Env))}
		return done, errors.Join(s.Check(), write(m.unit, s.Launchd(), 0o600))
	}
	done := Installation{Unit: m.unit, Env: m.env}
	env, err := readEnvironment(m.env)
	if err != nil {
		return done, err
	}
	for name := range env {
		if _, named := s.Env[name]; !named {
			done.Kept = append(done.Kept, name)
		}
	}
	maps.Copy(env, s.Env)
	s.Env, done.Variables = env, slices.Sorted(maps.Keys(env))
	slices.Sort(done.Kept)
	if err := s.Check(); err != nil {
		return done, err
	}
	if err := write(m.env, environmentText(env), 0o600); err != nil {
		return done, fmt.Errorf("write the environment of the service: %w", err)
	}
	if err := write(m.unit, s.Systemd(m.env), 0o644); err != nil {
		return done, fmt.Errorf("write the unit: %w", err)
	}
	return done, nil
}

// Enable starts what Write has written, now and whenever the machine or the user's session
// starts. A service that runs is restarted. On systemd it returns when the daemon is
// ready, or has failed.
func (m *Manager) Enable(ctx context.Context) error {
	if m.macOS {
		_ = exec.CommandContext(ctx, "launchctl", "bootout", m.domain()+"/"+Label).Run() // of an earlier installation, if any
		return m.run(ctx, "launchctl", "bootstrap", m.domain(), m.unit)
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--quiet", Name}, {"restart", Name}} {
		if err := m.systemctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Linger keeps the services of this user running without a session: at the start of the
// machine and after logout. It does nothing for a service of the machine.
func (m *Manager) Linger(ctx context.Context) error {
	if m.System || m.macOS {
		return nil
	}
	return m.run(ctx, "loginctl", "enable-linger")
}

// Uninstall stops the service and removes its unit. The environment file stays, for it may
// have the only copy of a token; its path is returned, empty for none.
func (m *Manager) Uninstall(ctx context.Context) (kept string, err error) {
	if err := m.there(); err != nil {
		return "", err
	}
	if m.macOS {
		err = m.run(ctx, "launchctl", "bootout", m.domain()+"/"+Label)
	} else {
		err = m.systemctl(ctx, "disable", "--quiet", "--now", Name)
	}
	if err != nil {
		return "", err
	}
	if err := os.Remove(m.unit); err != nil {
		return "", fmt.Errorf("remove the unit: %w", err)
	}
	if m.macOS {
		return "", nil
	}
	if _, err := os.Lstat(m.env); err == nil {
		kept = m.env
	}
	return kept, m.systemctl(ctx, "daemon-reload")
}

func (m *Manager) there() error {
	if m.Installed() {
		return nil
	}
	return ErrNotInstalled
}

// Start starts the service unless it runs.
func (m *Manager) Start(ctx context.Context) error {
	return m.control(ctx, []string{"start"}, []string{"kickstart", m.domain() + "/" + Label})
}

// Stop stops the service until the next start of it or of the machine.
func (m *Manager) Stop(ctx context.Context) error {
	return m.control(ctx, []string{"stop"}, []string{"kill", "SIGTERM", m.domain() + "/" + Label})
}

// Restart stops the service, if it runs, and starts it.
func (m *Manager) Restart(ctx context.Context) error {
	return m.control(ctx, []string{"restart"}, []string{"kickstart", "-k", m.domain() + "/" + Label})
}

// Status prints what the manager knows of the service. It fails unless the service runs.
func (m *Manager) Status(ctx context.Context) error {
	if !m.macOS {
		return m.control(ctx, []string{"status", "--no-pager", "--lines=0"}, nil)
	}
	if err := m.there(); err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, "launchctl", "print", m.domain()+"/"+Label).Output()
	if err != nil {
		return fmt.Errorf("launchctl print: %w", err)
	}
	_, err = io.WriteString(m.Out, launchdState(string(said)))
	return err
}

// launchdState is what launchctl print says of the state of an agent, without its variables,
// which are secrets.
func launchdState(said string) string {
	var b strings.Builder
	for line := range strings.Lines(said) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if ok && strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "\t\t") && slices.Contains([]string{"state", "pid", "runs", "last exit code"}, name) {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	return b.String()
}

func (m *Manager) control(ctx context.Context, systemctl, launchctl []string) error {
	if err := m.there(); err != nil {
		return err
	}
	if m.macOS {
		return m.run(ctx, "launchctl", launchctl...)
	}
	return m.systemctl(ctx, append(systemctl, Name)...)
}

// Logs prints the newest lines of the log, and with follow those that come until ctx ends.
// log is where launchd keeps it.
func (m *Manager) Logs(ctx context.Context, lines int, follow bool, log string) error {
	if err := m.there(); err != nil {
		return err
	}
	name, args := "journalctl", []string{"--unit=" + Name, "--output=cat"}
	switch {
	case m.macOS:
		name, args = "tail", nil
	case !m.System:
		args[0] = "--user-unit=" + Name
	}
	args = append(args, "-n", strconv.Itoa(lines))
	if follow {
		args = append(args, "-f")
	}
	if m.macOS {
		args = append(args, log)
	}
	err := m.run(ctx, name, args...)
	if follow && ctx.Err() != nil {
		return nil // Ctrl-C ends it
	}
	return err
}
