package configs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// ofKubernetes are variables that Kubernetes makes for a service whose name begins
// with claybot-node or claybot-storage.
var ofKubernetes = lazyregexp.New(`_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT(_\d+_|$)`)

// CheckNames refuses a variable of the environment (NAME=value each) that would make
// this process one of several nodes if its name were right: a process that has a store
// of its own by mistake, with the bots of others, is worse than one that does not
// start.
func CheckNames(environ []string) error {
	var known []string
	for _, v := range variables() {
		if ofCluster(v.name) {
			known = append(known, v.name)
		}
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !ofCluster(name) || ofKubernetes.MatchString(name) {
			continue
		}
		if slices.Contains(known, name) {
			continue
		}
		if near := Nearest(name, known); near != "" {
			return fmt.Errorf("%s: there is no such variable; perhaps %s is meant", name, near)
		}
		return fmt.Errorf("%s: there is no such variable; docs/scaling.md names those that there are", name)
	}
	return nil
}
