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

// platformOf is the platform of the connector with a name.
func platformOf(in platforms.Instances, name string) (platforms.Platform, error) {
	p, ok := in.Of(name)
	if ok {
		return p, nil
	}
	err := fmt.Errorf("%s is not a connector (%s)", quote(name), strings.Join(in.Names(), ", "))
	return p, &wordError{err, name, in.Names()}
}
