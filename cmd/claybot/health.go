package main

import "fmt"

type healthCmd struct {
	Ready bool `help:"Check readiness: every connector has connected once and the store responds."`
}

// Run checks the daemon over its socket, so that the probes of a container need
// neither a shell nor the web page.
func (c healthCmd) Run(e *env) error {
	path, state := "/healthz", "ok"
	if c.Ready {
		path, state = "/readyz", "ready"
	}
	if err := e.ask("GET", path, nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.out, state)
	return err
}
