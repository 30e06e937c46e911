//go:build !linux || !amd64

package main

// canSabotage: there is no saboteur for this system.
const canSabotage = false

func beTraced([]string) error { return errNoSaboteur }

func (s *sabotage) run([]string) (int, error) { return 125, errNoSaboteur }
