package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/web"
)

// record adds a case that is made of a run to the cases of its flow. It writes none that fails.
func (c flowTestCmd) record(e *env, dir string, conf *configs.Config) error {
	if len(c.Names) > 0 || c.Crash || c.JUnit != "" {
		return usageError{errors.New("--record goes with no other argument")}
	}
	id, err := e.run(c.Record)
	if err != nil {
		return err
	}
	got, err := ask[web.FlowCase](e, "GET", at(runPath(id, "case")), nil)
	if err != nil {
		return err
	}
	var one flow.Case
	if err := json.Unmarshal(got.Case, &one); err != nil {
		return fmt.Errorf("read the case: %w", err)
	}
	path := filepath.Join(dir, got.Flow+casesEnding)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && strings.TrimSpace(string(before)) != "" {
		cases, err := readCases(path)
		if err != nil {
			return configError{err}
		}
		if slices.ContainsFunc(cases, func(x flow.Case) bool { return x.Name == one.Name }) {
			return fmt.Errorf("%s has a case %q already", path, one.Name)
		}
	}
	f, err := readFlow(dir, got.Flow, conf)
	if err != nil {
		return err
	}
	wrong, _, err := testPlayer(f).Test(context.Background(), one)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the case fails with %s, which was changed since the run began: %s", f.File, strings.Join(wrong, "; "))
	}
	text, err := caseText(got.Case)
	if err != nil {
		return err
	}
	if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		before = append(before, '\n')
	}
	if err := os.WriteFile(path, append(before, text...), 0o600); err != nil {
		return err
	}
	return e.text(fmt.Sprintf("Added the case %q to %s; it passes. Read it before you share it.\n", one.Name, path))
}

// caseText is a case as its file has it: each part on a line, without what is empty.
func caseText(raw json.RawMessage) (string, error) {
	var c map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&c); err != nil {
		return "", fmt.Errorf("read the case: %w", err)
	}
	var b strings.Builder
	for i, part := range []string{"name", "trigger", "nodes", "answers", "expect"} {
		v := c[part]
		if m, ok := v.(map[string]any); ok {
			for key, value := range m {
				if (part == "trigger" || part == "expect") && isEmpty(value) {
					delete(m, key)
				}
			}
			if len(m) == 0 {
				continue
			}
		}
		if isEmpty(v) {
			continue
		}
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return "", err
		}
		lead := "  "
		if i == 0 {
			lead = "- "
		}
		b.WriteString(lead + part + ": " + line.String())
	}
	return b.String(), nil
}

// isEmpty reports whether a value says nothing in a case.
func isEmpty(v any) bool { return v == nil || v == "" || v == false }

// readFlow reads the file of a flow, without a daemon.
func readFlow(dir, name string, conf *configs.Config) (*flows.Flow, error) {
	files, err := readFlows(dir)
	if err != nil {
		return nil, err
	}
	all, faults := checkFlows(dir, files, offlineWorld(conf))
	f := all[name]
	if f == nil {
		return nil, fmt.Errorf("no workflow %.64q in %s", name, dir)
	}
	if i := slices.IndexFunc(faults, func(x fileFault) bool { return x.File == f.File }); i >= 0 {
		return nil, configError{errors.New(faults[i].String())}
	}
	return f, nil
}
