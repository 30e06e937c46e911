package configs

import (
	"fmt"
	"strings"

	"github.com/claybot/claybot/platforms"
)

// checkID refuses an id that does not have a form.
func checkID(f platforms.Form, id string) error {
	if !f.Looks.MatchString(id) {
		return fmt.Errorf("%s is not %s", quote(id), f.Not)
	}
	return nil
}

// checkListed refuses whatever is not a stable id: names can change hands.
func checkListed(p platforms.Platform, id string) error {
	switch {
	case id == "*":
		return fmt.Errorf("%s does not mean everybody; that is access: open", quote(p.Name+":*"))
	case p.Listed.Looks == nil:
		return nil
	}
	return checkID(p.Listed, id)
}

// connectorNames are the names that descriptors can have.
func connectorNames() (names []string) {
	for _, p := range platforms.All() {
		names = append(names, p.Name)
	}
	return names
}

// platformOf is the platform with a name.
func platformOf(name string) (platforms.Platform, error) {
	for _, p := range platforms.All() {
		if p.Name == name {
			return p, nil
		}
	}
	err := fmt.Errorf("%s is not a connector (%s)", quote(name), strings.Join(connectorNames(), ", "))
	return platforms.Platform{}, &wordError{err, name, connectorNames()}
}
