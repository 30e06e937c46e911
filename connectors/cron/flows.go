package cron

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// KeepFlows makes the tasks of specs, each of which names a flow, all that do: it adds those that are
// missing, changes those whose schedule, zone, text or owner differ, and removes all others. Other
// settings of their files stay, such as enabled. It changes nothing where that is so already.
func (c *Cron) KeepFlows(ctx context.Context, specs []connectors.TaskSpec) error {
	return c.sched.Edit(ctx, func(run context.Context) error {
		if err := c.table.scan(run, nil, false); err != nil {
			return err
		}
		changed := false
		for _, spec := range specs {
			did, err := c.keepFlow(ctx, spec)
			if err != nil {
				return fmt.Errorf("keep the task of the flow %s: %w", spec.Flow, err)
			}
			changed = changed || did
		}
		for _, slug := range c.flowsBut(specs) {
			if err := c.folder.putAway(ctx, slug, 0); err != nil {
				return fmt.Errorf("remove the task %s: %w", slug, err)
			}
			changed = true
		}
		if !changed {
			return nil
		}
		return c.table.scan(run, nil, true)
	})
}

// flowsBut returns the slugs of tasks that name a flow which no spec has.
func (c *Cron) flowsBut(specs []connectors.TaskSpec) (slugs []string) {
	c.sched.Mu.Lock()
	defer c.sched.Mu.Unlock()
	for _, t := range c.table.tasks {
		flow := t.def.spec.Flow
		if flow != "" && !t.gone && !slices.ContainsFunc(specs, func(s connectors.TaskSpec) bool { return s.Flow == flow }) {
			slugs = append(slugs, t.slug)
		}
	}
	return slugs
}

// keepFlow writes the file of one task, if it differs.
func (c *Cron) keepFlow(ctx context.Context, spec connectors.TaskSpec) (changed bool, err error) {
	slug := "flow-" + strings.ReplaceAll(spec.Flow, "/", "-")
	fresh := front(connectors.FileID("flow", spec.Flow), spec)
	f, err := storage.ReadFile(ctx, c.folder.tree, taskPath(slug))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = c.folder.tree.Write(ctx, taskPath(slug), []byte(fresh.String()), 0)
		if errors.Is(err, storage.ErrStale) { // another member has written it
			err = nil
		}
		return true, err
	}
	if err != nil {
		return false, err
	}
	return c.renewFlow(ctx, slug, string(f.Body), fresh)
}

// renewFlow changes the settings in the file of a task that a flow decides about.
func (c *Cron) renewFlow(ctx context.Context, slug, text string, fresh configs.Frontmatter) (changed bool, err error) {
	renewed := func(old string) (string, error) {
		f, err := configs.ReadFrontmatter(old)
		if err != nil {
			return fresh.String(), nil // damaged by hand
		}
		for _, x := range fresh.Fields {
			f.Set(x.Key, x.Value)
		}
		for _, key := range []string{"timezone", "every", "at"} {
			if !slices.ContainsFunc(fresh.Fields, func(x configs.Field) bool { return x.Key == key }) {
				f.Set(key, "")
			}
		}
		f.Body = fresh.Body
		return f.String(), nil
	}
	if next, _ := renewed(text); next == text {
		return false, nil
	}
	return true, c.folder.edit(ctx, taskPath(slug), func(old string, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return renewed(old)
	})
}

// flowStart is the start of the flow that a task names; nil for none.
func (d *definition) flowStart() *claybot.FlowStart {
	if d.spec.Flow == "" {
		return nil
	}
	name, trigger, _ := strings.Cut(d.spec.Flow, "/")
	return &claybot.FlowStart{Name: name, Trigger: trigger, Connector: Name}
}
