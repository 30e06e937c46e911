package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
)

// A guide does the steps of setup for the face that the user looks at: the terminal, see setup, or the
// page, see setupDesk. It checks what the user gives, stores it, and has a running daemon apply it.
// The face asks the questions.
type guide struct {
	*env
	ctx context.Context //nolint:containedctx // it ends with the command or the request
	by  string          // who changes the file
	// say shows what was found: a line that begins with ✓, or with ! for what needs a look.
	say func(format string, args ...any)
	// again returns how to go on with a step after an error, as the end of a sentence.
	again  func(step string) string
	within func() configs.Config // the settings in force of the daemon that it is part of; nil for none
	daemon *client               // that was reached or started
	stop   func() error          // of a daemon inside this process; nil for none
	// Of a daemon that runs already, once it has read the file:
	read      bool              // it has, since the last change
	elsewhere string            // that it reads another file; empty if it does not
	differs   map[string]string // the settings that it has from elsewhere, by key, in words
}

// A setting is a change of a key of the configuration file.
type setting struct {
	key    string
	value  string // empty with a secret
	secret string // to store in a file of its own
	unset  bool
}

// save changes keys in their order and has a running daemon read them once. A daemon inside this
// process starts anew when it is needed.
func (s *guide) save(all ...setting) error {
	if err := s.leave(); err != nil {
		return err
	}
	f, err := s.configFile()
	if err != nil {
		return err
	}
	defer f.unlock()
	f.by = s.by
	if err := f.lock(s.ctx); err != nil { // and not for longer than the face waits
		return err
	}
	var said strings.Builder
	quiet, flags := *s.env, *s.cli
	quiet.out, quiet.cli, flags.Model = &said, &flags, "" // the model of the flag is what is stored
	changed := false
	for _, x := range all {
		done, err := f.set(&quiet, x)
		if err != nil {
			return err
		}
		changed = changed || done
	}
	if !changed {
		return nil
	}
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "wins over the file") {
			s.say("! %s", line)
		}
	}
	keys := make([]string, len(all))
	for i, x := range all {
		keys[i] = x.key
	}
	if err := s.reread(f, "", keys...); err != nil {
		return err
	}
	if s.elsewhere != "" {
		s.say("! %s\n", s.elsewhere)
	}
	return nil
}

// set does one change of the file.
func (f *configFile) set(e *env, x setting) (changed bool, err error) {
	if !x.unset {
		return f.put(e, configs.Meant(f.text, x.key), x.value, x.secret)
	}
	if err := f.lock(context.Background()); err != nil {
		return false, err
	}
	next, err := configs.Unset(f.text, x.key)
	if err != nil || string(next) == string(f.text) {
		return false, err
	}
	return true, f.change(e, []string{x.key}, next)
}

// connected returns the daemon: one that runs, or one inside this process.
func (s *guide) connected() (*client, error) {
	if s.daemon != nil {
		return s.daemon, nil
	}
	config, _, err := s.load()
	if err != nil {
		return nil, err
	}
	cl, err := dial(config.DataDir)
	switch {
	case errors.Is(err, api.ErrNoDaemon) && s.within == nil:
		s.read, s.elsewhere, s.differs = false, "", nil
		cl, s.stop, err = s.inside(s.ctx, config)
	case err == nil && !s.read && !s.inForce(config):
		err = s.readNow("")
	}
	if err == nil && s.elsewhere != "" {
		err = errors.New(s.elsewhere)
	}
	if err == nil {
		err = cl.ready(s.ctx)
	}
	if err != nil {
		return nil, err
	}
	s.daemon = cl
	return cl, nil
}

// inForce reports whether the daemon that the guide is part of runs what the file says, so that it need not
// read it again at each look.
func (s *guide) inForce(config configs.Config) bool {
	return s.within != nil && len(newComparison(config).differs(s.within())) == 0
}

// leave ends a daemon inside this process.
func (s *guide) leave() error {
	stop := s.stop
	s.daemon, s.stop = nil, nil
	if stop == nil {
		return nil
	}
	return stop()
}

// secretSetting is the change that stores a secret, or refers to it.
func secretSetting(key, secret, reference string) setting {
	if reference != "" {
		return setting{key: key, value: reference}
	}
	return setting{key: key, secret: secret}
}

// cause is why a platform refuses, without what connectors say of how to go on.
func cause(err error) string {
	var p *connectors.PermanentError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// call asks the daemon for something.
func (s *guide) call(method, path string, in, out any) error {
	cl, err := s.connected()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	return cl.call(ctx, method, path, in, out)
}

// get asks the daemon.
func (s *guide) get(path string, out any) error { return s.call(http.MethodGet, path, nil, out) }
