package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
)

// verifyTime bounds how long a connector may ask its platform whether its credentials are good.
const verifyTime = 10 * time.Second

// An instance is a connector and the settings that it was made from.
type instance struct {
	connectors.Connector
	settings configs.ConnectorSettings
}

// stays reports whether the connector goes on with the settings now. One that has stopped does
// not: a reload tries it again.
func (i instance) stays(now configs.ConnectorSettings) bool {
	return configs.Same(i.settings, now) && i.Health().State != connectors.StateStopped
}

// connect makes the connectors that the configuration asks for: one whose settings are the
// same is the same as before. A connector that works is replaced only after the platform took
// the credentials of the next one, or could not be asked. It returns why others stay as they are.
func (d *daemon) connect(ctx context.Context, c configs.Config) (refused []overview.SettingStatus) {
	next := make(map[string]instance)
	var all []connectors.Connector
	for _, i := range c.Connectors.Instances() {
		was, there := d.instances[i.Name]
		if !there || !was.stays(i.Settings) {
			made := instance{d.make(c, i), i.Settings}
			err := error(nil)
			if there && was.Health().State != connectors.StateStopped {
				err = verify(ctx, made.Connector)
			}
			if err == nil {
				was = made
			} else {
				refused = append(refused, overview.SettingStatus{
					Text: fmt.Sprintf("connector %s keeps its old settings: the new ones were refused: %s", i.Name, strings.TrimPrefix(err.Error(), i.Name+": ")),
					Next: "correct them; the old ones end with this process", Off: true,
				})
			}
		}
		next[i.Name] = was
		all = append(all, was.Connector)
	}
	d.instances = next
	d.roster.set(all)
	return refused
}

// make makes the connector of an instance.
func (d *daemon) make(c configs.Config, i configs.Instance) connectors.Connector {
	if why := i.Settings.Off(); why != "" {
		return offConnector{i.Name, why}
	}
	return constructors[i.Settings.Type()](d, c, i)
}

// verify returns the error of credentials that are refused, or that cannot be right.
func verify(ctx context.Context, c connectors.Connector) error {
	v, ok := c.(connectors.Verifier)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	var permanent *connectors.PermanentError
	if err := v.Verify(ctx); errors.As(err, &permanent) {
		return permanent
	}
	return nil // whether they are good turns out later
}

// reconnect puts the connectors of the configuration in force. It returns why some stay as they are.
func (d *daemon) reconnect(ctx context.Context) (refused []string) {
	kept := d.connect(ctx, *d.config.Load())
	d.config.kept.Store(&kept)
	for _, k := range kept {
		refused = append(refused, k.Text)
		d.log.Error("changed setting not applied", "problem", k.Text)
	}
	d.system.Replace(ctx, d.roster.all()...)
	return refused
}
