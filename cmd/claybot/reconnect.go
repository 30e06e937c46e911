package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
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
// not: a reload tries it again. A webhook calls no platform, so another try would end as the first.
func (i instance) stays(now configs.ConnectorSettings) bool {
	_, hook := i.settings.(*configs.Webhook)
	return configs.Same(i.settings, now) && (hook || i.Health().State != connectors.StateStopped)
}

// connect makes the connectors that the configuration asks for: one whose settings are the
// same is the same as before. A connector that works is replaced only after the platform took
// the credentials of the next one, or could not be asked. It returns why others stay as they are,
// and why new ones do not work.
func (d *daemon) connect(ctx context.Context, c configs.Config) (refused []overview.SettingStatus, idle []string) {
	all := c.Connectors.Instances()
	next := d.wanted(c, all)
	why := d.verify(ctx, next)
	for _, name := range slices.Sorted(maps.Keys(why)) {
		if _, there := d.instances[name]; !there {
			idle = append(idle, "The connector "+name+" does not work: "+strings.TrimPrefix(why[name].Error(), name+": "))
			delete(why, name)
		}
	}
	d.spare(next, why)
	instances := make(map[string]instance)
	var present []connectors.Connector
	for _, i := range all {
		use := next[i.Name]
		if cause := why[i.Name]; cause != nil {
			refused = append(refused, keptStatus(i.Name, cause))
			was, there := d.instances[i.Name]
			if use = was; !there {
				use = instance{offConnector{i.Name, cause.Error()}, i.Settings}
			}
		}
		instances[i.Name] = use
		present = append(present, use.Connector)
	}
	d.instances = instances
	d.roster.set(present)
	return refused, idle
}

// wanted returns the connectors that the configuration asks for, by name: those that stay, and new
// ones for the others.
func (d *daemon) wanted(c configs.Config, all []configs.Instance) map[string]instance {
	next := make(map[string]instance)
	for _, i := range all {
		if was, there := d.instances[i.Name]; there && was.stays(i.Settings) {
			next[i.Name] = was
		} else {
			next[i.Name] = instance{d.make(c, i), i.Settings}
		}
	}
	return next
}

// spare notes why new connectors cannot have an account that another one keeps, because its own
// new settings were refused. Each that is refused for that may keep an account as well.
func (d *daemon) spare(next map[string]instance, why map[string]*connectors.PermanentError) {
	for again := true; again; {
		again = false
		for name, n := range next {
			if holder := d.holder(n, why); why[name] == nil && d.instances[name].Connector != n.Connector && holder != "" {
				why[name], again = &connectors.PermanentError{Err: errors.New("the connector " + holder + " still has that account")}, true
			}
		}
	}
}

// keptStatus says that a connector keeps its old settings, and why, with the code and the next step that the doctor
// has for the same refusal.
func keptStatus(name string, cause *connectors.PermanentError) overview.SettingStatus {
	return overview.SettingStatus{
		Connector: name,
		Text:      fmt.Sprintf("connector %s goes on with its old settings, because the new ones were refused: %s; after a restart it has no others", name, strings.TrimPrefix(cause.Err.Error(), name+": ")),
		Next:      cmp.Or(cause.Fix, nextOf(overview.RefusalCode(cause))), Off: true, Code: overview.RefusalCode(cause),
	}
}

// holder returns the connector that keeps its old settings and with them an account of i; empty
// for none.
func (d *daemon) holder(i instance, why map[string]*connectors.PermanentError) string {
	for name := range why {
		was, there := d.instances[name]
		if there && slices.ContainsFunc(was.settings.Accounts(), func(a string) bool { return slices.Contains(i.settings.Accounts(), a) }) {
			return name
		}
	}
	return ""
}

// verify returns why connectors that are new, or would replace one that works, do not work, by name:
// their credentials are refused, or cannot be right. It asks all platforms at a time; none at the start.
func (d *daemon) verify(ctx context.Context, next map[string]instance) (why map[string]*connectors.PermanentError) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	why = make(map[string]*connectors.PermanentError)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, n := range next {
		v, verifies := n.Connector.(connectors.Verifier)
		was, there := d.instances[name]
		if !verifies || d.instances == nil || there && (was.Connector == n.Connector || was.Health().State == connectors.StateStopped) {
			continue
		}
		asking.Go(func() {
			var permanent *connectors.PermanentError
			if errors.As(v.Verify(ctx), &permanent) { // otherwise it turns out later
				mu.Lock()
				defer mu.Unlock()
				why[name] = permanent
			}
		})
	}
	asking.Wait()
	return why
}

// retire ends the connectors whose names are gone from the next configuration, or stand for
// another platform there, before it is in force: what it says of a name, such as whom to trust,
// must not hold for a connector of another kind.
func (d *daemon) retire(ctx context.Context, next configs.Config) {
	var stay []connectors.Connector
	instances := make(map[string]instance)
	for name, i := range d.instances {
		if s, there := next.Connectors.Instance(name); there && s.Type() == i.settings.Type() {
			instances[name] = i
			stay = append(stay, i.Connector)
		}
	}
	if len(instances) < len(d.instances) {
		d.instances = instances
		d.roster.set(stay)
		d.replace(ctx)
	}
}

// make makes the connector of an instance.
func (d *daemon) make(c configs.Config, i configs.Instance) connectors.Connector {
	if why := i.Settings.Off(); why != "" {
		return offConnector{i.Name, why}
	}
	c.HTTP = d.config.began.HTTP // which only a restart changes
	return constructors[i.Settings.Type()](d, c, i)
}

// reconnect puts the connectors of the configuration in force. It returns why some stay as they are,
// and why new ones do not work.
func (d *daemon) reconnect(ctx context.Context) (refused, idle []string) {
	kept, idle := d.connect(ctx, *d.config.Load())
	d.config.kept.Store(&kept)
	for _, k := range kept {
		refused = append(refused, k.Text)
		d.log.Error("changed setting not applied", "problem", k.Text)
	}
	d.replace(ctx)
	return refused, idle
}
