package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/service"
	"github.com/claybot/claybot/storage/files"
)

type serviceInstallCmd struct {
	RunAs string `placeholder:"USER" help:"User of a service of the machine. Default: the owner of the data directory, else who called sudo, else root."`
	Print bool   `help:"Print the unit and change nothing."`
}

// Run installs the service with the configuration, data directory and variables that a
// daemon started here would use, and starts it.
func (c serviceInstallCmd) Run(e *env) error {
	return e.Service.managed(e, func(ctx context.Context, m *service.Manager) error {
		s, err := c.service(e, m.System)
		if err != nil {
			return err
		}
		if c.Print {
			return e.text(m.Text(s))
		}
		if err := c.check(ctx, s, m); err != nil {
			return err
		}
		done, err := m.Write(s)
		if err != nil {
			return err
		}
		text := "Wrote " + done.Unit + ", with " + namesOf(done) + "\n"
		if done.Env != "" {
			text = fmt.Sprintf("Wrote %s\nWrote %s, with %s\n", done.Unit, done.Env, namesOf(done))
		}
		if err := e.text(text); err != nil {
			return err
		}
		if err := m.Enable(ctx); err != nil {
			return fmt.Errorf("%w; the log says why: claybot service logs", err)
		}
		if err := m.Linger(ctx); err != nil {
			fmt.Fprintf(e.err, "claybot: warning: the service runs only while this user is logged in: %v; as root, run: loginctl enable-linger USER\n", err)
		}
		return e.text("claybot is running as a service.\n  Log:       claybot service logs -f\n  Web page:  claybot open\n")
	})
}

// check returns why a service cannot be installed.
func (c serviceInstallCmd) check(ctx context.Context, s service.Service, m *service.Manager) error {
	if err := m.Probe(ctx); errors.Is(err, service.ErrNone) {
		return fmt.Errorf("%w; this prints a unit for another machine: claybot service install --print", err)
	} else if err != nil {
		return err
	}
	_, holder, err := files.Look(s.Data)
	switch {
	case err != nil:
		return configError{err}
	case holder != "" && !m.Installed():
		return fmt.Errorf("claybot is running on %s already (%s), and not as a service; stop it first: claybot stop", s.Data, holder)
	}
	return s.Check()
}

// namesOf names the variables of a service. Their values are never shown.
func namesOf(done service.Installation) string {
	if len(done.Variables) == 0 {
		return "no variables"
	}
	text := count(len(done.Variables), "variable") + ": " + strings.Join(done.Variables, ", ")
	if len(done.Kept) > 0 {
		text += " (kept from before: " + strings.Join(done.Kept, ", ") + ")"
	}
	return text
}

// service describes the daemon that would run with these flags, in this directory and
// environment.
func (c serviceInstallCmd) service(e *env, system bool) (s service.Service, err error) {
	config, _, err := e.load()
	if err != nil {
		return s, err
	}
	if s.Program, err = os.Executable(); err != nil {
		return s, fmt.Errorf("find this program: %w", err)
	}
	if s.Dir, err = os.Getwd(); err != nil {
		return s, fmt.Errorf("find this directory: %w", err)
	}
	s.Data = filepath.Join(s.Dir, config.DataDir)
	if filepath.IsAbs(config.DataDir) {
		s.Data = filepath.Clean(config.DataDir)
	}
	file := config.Source.File
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(s.Dir, file)
	}
	s.Args = []string{"serve", "--data-dir", s.Data}
	for _, f := range [][2]string{
		{"--config", file}, {"--http", e.HTTP}, {"--access", e.Access}, {"--model", e.Model}, {"--log", e.Log}, {"--log-level", e.LogLevel},
	} {
		if f[1] != "" {
			s.Args = append(s.Args, f[0], f[1])
		}
	}
	s.Path, _ = e.lookup("PATH")
	if s.Env, err = usedVariables(e); err != nil {
		return s, err
	}
	switch {
	case system:
		s.User, err = c.user(e, s.Data)
	case c.RunAs != "":
		err = usageError{errors.New("--run-as: only root can install a service for another user")}
	}
	return s, err
}

// user is who runs a service of the machine.
func (c serviceInstallCmd) user(e *env, data string) (string, error) {
	sudo, _ := e.lookup("SUDO_USER")
	name := cmp.Or(c.RunAs, ownerOf(data), sudo, "root")
	if _, err := user.Lookup(name); err != nil {
		return "", usageError{fmt.Errorf("--run-as: %w", err)}
	}
	return name, nil
}

// ownerOf is the name of the user who owns a directory; empty if it is not there.
func ownerOf(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(st.Uid), 10))
	if err != nil {
		return ""
	}
	return u.Username
}

// foreign are variables of libraries, and of the programs that claybot starts.
var foreign = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "TZ", "DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
}

// flagged are variables that the service does not need, since it has a flag or its manager
// sets them.
var flagged = []string{"CLAYBOT_CONFIG", "CLAYBOT_DATA_DIR", "HOME", "PATH"}

// usedVariables returns the variables of the environment that the configuration reads.
func usedVariables(e *env) (map[string]string, error) {
	used := make(map[string]string)
	lookup := func(name string) (string, bool) {
		v, set := e.lookup(name)
		if set && !slices.Contains(flagged, name) {
			used[name] = v
		}
		return v, set
	}
	if _, _, err := configs.Load(e.Config, lookup); err != nil {
		return nil, configError{err}
	}
	for _, name := range foreign {
		lookup(name)
	}
	return used, nil
}
