package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

// A findingList is what the daemon knows of its parts.
type findingList struct {
	all  []overview.Finding
	hide *strings.Replacer
}

// works notes that a part works.
func (l *findingList) works(what string, part texts.Part) {
	l.all = append(l.all, overview.Finding{What: what, Level: postgres.LevelOK, Code: postgres.CodeOK, Part: part})
}

// wrong notes what is wrong with a part. next is the next step; if it is empty, the finding has that
// of its code. A finding without a part is never told in chats.
func (l *findingList) wrong(what string, part texts.Part, level, code, text, next string) {
	known := codeOf(code)
	f := overview.Finding{What: what, Level: level, Code: code, Text: l.hide.Replace(text), Next: l.hide.Replace(cmp.Or(next, known.next)), Part: part}
	if known.chats && part.Kind != "" {
		f.Means = known.means
	}
	l.all = append(l.all, f)
}

// findings returns what the daemon knows of its parts. The doctor, the status, the page and the chats
// of operators have their words from here.
func (d *daemon) findings(st overview.Status) []overview.Finding {
	l := &findingList{hide: strings.NewReplacer(hidden(*d.config.Load())...)}
	full := d.diskFindings(l, st)
	d.memberFindings(l, st)
	d.settingFindings(l, st)
	d.restartFindings(l)
	d.flowFindings(l)
	for _, x := range st.Connectors {
		if full && strings.Contains(x.Err, " stored") {
			continue // because of the disk
		}
		d.connectorFindings(l, x)
	}
	if why := skillsMissing(d.config.Load()); why != "" {
		l.wrong("skills", texts.Part{}, overview.LevelWarning, "skills-missing", why, "")
	}
	d.serverFindings(l)
	d.stoppedFindings(l)
	for _, x := range st.Sinks {
		_, ofSetting := relaySetting(d.config.Load(), x.Name)
		switch part := (texts.Part{Kind: texts.PartRelay, Name: x.Name}); {
		case x.Error != "" && ofSetting: // which has the finding
		case x.Error != "":
			l.wrong("relay "+x.Name, part, overview.LevelWarning, "relay-failing", relayLine(x), "")
		case !x.Standby && x.Stopped == "" && x.Success != 0:
			l.works("relay "+x.Name, part)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.Checks)) {
		part := texts.Part{Kind: texts.PartCheck, Name: name}
		if x := st.Checks[name]; x.Problem {
			l.wrong("check "+name, part, overview.LevelProblem, cmp.Or(x.Code, "check-failing"), checkLine(x), d.afterCheck(x))
			continue
		}
		l.works("check "+name, part)
	}
	d.modelFindings(l)
	d.probes.findings(l)
	return l.all
}

// afterCheck is the next step after a check that found something, where that is another one than that of the code.
func (d *daemon) afterCheck(x overview.CheckStatus) string {
	if x.Code == "database-damaged" {
		return afterDamage(d.config.Load().DataDir)
	}
	return ""
}

// readiness reports whether this member is ready, or else what is missing, with its code and next step.
func (d *daemon) readiness() (ok bool, missing web.Problem) {
	f, by := d.system.Overview.Unready()
	if f.Code == "" {
		return true, missing
	}
	l := &findingList{hide: strings.NewReplacer(hidden(*d.config.Load())...)}
	if f.What == "unwell" && d.diskFindings(l, overview.Status{}) {
		f.Text = l.all[0].Text
	}
	if by != nil { // the code and the next step are those of the status
		if w, ofSetting := settingOf(d.config.Load(), *by); ofSetting {
			l.wrong(f.What, f.Part, f.Level, w.Code(), w.String(), nextFor(w))
			f.Text = "connector " + by.Name + " is off: " + w.String()
		} else {
			d.connectorFindings(l, *by)
		}
	}
	l.wrong(f.What, f.Part, f.Level, f.Code, f.Text, "")
	f.Text, f.Code, f.Next = l.all[len(l.all)-1].Text, l.all[0].Code, l.all[0].Next
	text := strings.TrimRight(strings.Replace(f.Text, "; "+f.Next, "", 1), ".")
	return false, web.Problem{Code: f.Code, Message: fmt.Sprintf("not ready: %s (%s).", text, f.Code), Fix: "Next step: " + f.Next}
}

// diskFindings are about the space for the data. It reports whether there is none.
func (d *daemon) diskFindings(l *findingList, st overview.Status) (full bool) {
	dir := d.config.Load().DataDir
	full = d.system.Worker.Health.Full()
	part := texts.Part{Kind: texts.PartDisk, Name: d.stores.members.Name()}
	code, text, next := spaceOf(*cmp.Or(st.Disk, new(overview.DiskStatus)), dir)
	switch {
	case st.Disk != nil && code == "disk-full":
		l.wrong("disk", part, overview.LevelProblem, code, text, next)
	case full:
		text, there, _ := strings.Cut(d.system.Worker.Health.Says(), "; ")
		if next == "" || d.config.began.Storage.Shared() { // it may be read-only, or that of the server
			next = there
		}
		l.wrong("disk", texts.Part{}, overview.LevelProblem, "disk-full", text, next) // operators have another notice of it
	case st.Disk != nil && code == "disk-low":
		l.wrong("disk", part, overview.LevelWarning, code, text, next)
	case st.Disk != nil && !d.system.Worker.Health.Open():
		l.works("disk", part)
	}
	return full
}

// memberFindings are about this process and the agents.
func (d *daemon) memberFindings(l *findingList, st overview.Status) {
	member := texts.Part{Kind: texts.PartMember, Name: d.stores.members.Name()}
	switch {
	case st.Unwell == "":
		l.works("unwell", member)
	case !d.system.Worker.Health.Full(): // of which the disk has a finding
		l.wrong("unwell", member, overview.LevelWarning, "daemon-unwell", st.Unwell, "")
	}
	for _, row := range faultRows(st) {
		code := cmp.Or(map[string]string{"dead route": "route-dead"}[row[0]], "agent-unusable")
		l.wrong(row[0], texts.Part{}, overview.LevelWarning, code, row[1], "")
	}
}

// restartFindings are about the settings that wait for a restart, with the values in force.
func (d *daemon) restartFindings(l *findingList) {
	now := *d.config.Load()
	for _, group := range d.config.waiting(now) {
		var all []string
		for _, p := range d.config.pending(group, now) {
			all = append(all, p.String())
		}
		text := cmp.Or(strings.Join(all, "; "), "the file has another value than the one in force")
		l.wrong("setting "+group, texts.Part{}, overview.LevelWarning, "restart-pending", text, "")
	}
}

// flowFindings are about the files of workflows.
func (d *daemon) flowFindings(l *findingList) {
	for _, x := range d.library.faulty() {
		l.wrong("workflows", texts.Part{}, overview.LevelProblem, "workflow-refused", x.Text, x.Next)
	}
	for _, x := range d.library.differing() {
		l.wrong("workflows", texts.Part{}, overview.LevelWarning, "workflows-differ", x.Text, "")
	}
}

// The next steps for connectors that fail and try again by themselves, and for those that settings switch off.
const (
	lookAtNetwork    = "look at the network and at the status page of the service"
	keepsTrying      = "claybot tries again by itself; if it stays so, " + lookAtNetwork + "; claybot doctor --online asks it"
	connectorOffNext = "correct it, then run: claybot config check; claybot reads the file again by itself, and its environment when it starts"
)

// connectorFindings are about a connector. Operators have another notice of one that has stopped.
func (d *daemon) connectorFindings(l *findingList, x overview.ConnectorStatus) {
	part := texts.Part{Kind: texts.PartConnector, Name: x.Name}
	_, ofSetting := settingOf(d.config.Load(), x)
	broken := x.Held != "" || !x.Well() && x.Err != ""
	code, text, next := overview.RefusalCode(x.Refusal), connectorLine(x), ""
	switch {
	case x.Held == "" && x.State == connectors.StateFailing:
		next = keepsTrying
	case x.Refusal != nil && x.Refusal.Fix != "":
		next = x.Refusal.Fix
		text = strings.Replace(text, "; "+next, "", 1)
	}
	if fault, why, step := d.hookFault(x); fault != "" {
		code, text, next = fault, why, step
	}
	switch off := offOf(d.config.Load(), x.Name); {
	case ofSetting: // which has the finding
	case off != "" && x.State == connectors.StateStopped:
		l.wrong(x.Name, texts.Part{}, overview.LevelProblem, "connector-off", "it is off: "+off, connectorOffNext)
	case broken && x.Name == "web":
		text, next, _ := strings.Cut(x.Err, "; ")
		l.wrong(x.Name, part, overview.LevelProblem, "http-unusable", text, next)
	case broken && x.Held == "" && (x.State == connectors.StateStopped || !x.Lapsed()):
		l.wrong(x.Name, texts.Part{}, overview.LevelProblem, code, text, next)
	case broken:
		l.wrong(x.Name, part, overview.LevelProblem, code, text, next)
	case x.State == connectors.StateLive:
		l.works(x.Name, part)
	}
	if x.Refused != nil {
		l.wrong(x.Name, texts.Part{}, overview.LevelWarning, "webhook-refused", connectorLine(x), "")
	}
}

// hookFault is what the doctor says of a webhook that has stopped; empty for another connector.
func (d *daemon) hookFault(x overview.ConnectorStatus) (code, text, next string) {
	c := d.config.Load()
	i, there := c.Connectors.Instance(x.Name)
	s, hooks := i.(*configs.Webhook)
	if !there || !hooks || x.State != connectors.StateStopped {
		return "", "", ""
	}
	at := x.Name // somewhere
	if d.config.began.HTTP.Addr == configs.Off {
		at = ""
	}
	return hookFault(x.Name, s, at)
}

// serverFindings are about the MCP servers.
func (d *daemon) serverFindings(l *findingList) {
	missing := missingPrograms(d.config.Load().Tools)
	for _, x := range d.tooling.servers.status() {
		switch part := (texts.Part{Kind: texts.PartMCP, Name: x.Name}); {
		case x.Err != "" && missing[x.Name] != nil:
			l.wrong("MCP server "+x.Name, part, overview.LevelWarning, "mcp-program-missing", missing[x.Name].Error(), programNext(x.Name))
		case x.Err != "":
			l.wrong("MCP server "+x.Name, part, overview.LevelWarning, "mcp-failing", serverLine(x), "")
		case x.State == mcp.StateConnected:
			l.works("MCP server "+x.Name, part)
		}
	}
}

// stoppedFindings are about what operators have stopped.
func (d *daemon) stoppedFindings(l *findingList) {
	for _, k := range slices.SortedFunc(slices.Values(d.stores.orders.All()), nodes.Key.Compare) {
		if o := d.stores.orders.Stopped(k); o != nil { // it may be started just now
			l.wrong(whatOf(k), texts.Part{}, overview.LevelWarning, "node-stopped", stoppedBy(*o), nodes.Fix(k))
		}
	}
}

// modelFindings are about the models that profiles use.
func (d *daemon) modelFindings(l *findingList) {
	c := d.config.Load()
	keys := modelKeys(c)
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(c.Agents.Profiles)) {
		m := c.Agents.Profiles[name].Model
		key := keys[fingerprint(m)]
		if m.Demo() || seen[key] {
			continue
		}
		seen[key] = true
		what, part := "model "+key, texts.Part{Kind: texts.PartModel, Name: key}
		if why := m.Off(); why != "" {
			if _, ofSetting := offBy(c, why); ofSetting {
				continue // the setting has the finding
			}
			l.wrong(what, part, overview.LevelProblem, "model-off", "it is off: "+why, correctModel)
			continue
		}
		switch ok, problem := d.models.state(m); {
		case problem.code == "credential-refused" && quotedKey(m) != "":
			l.wrong(what, part, overview.LevelProblem, configs.CodeQuoted, quotedKey(m)+" contains spaces or quotes", configs.WithoutQuotes(setModelKey))
		case problem.code != "":
			l.wrong(what, part, problem.level(), problem.code, problem.text, problem.next())
		case ok:
			l.works(what, part)
		case m.Keyless():
			l.wrong(what, part, overview.LevelWarning, "model-no-key", noKey(m), setKey)
		}
	}
}

// quotedKey names a key of a model that has spaces or quotes; empty for none.
func quotedKey(m configs.Model) string {
	for _, k := range m.Credentials() {
		if configs.HasQuotes(k.Value()) {
			return k.String()
		}
	}
	return ""
}

// A modelProblem is why a model does not answer.
type modelProblem struct{ code, text string }

// level is that of the doctor.
func (p modelProblem) level() string {
	if p.code == "credential-refused" || p.code == "model-unreachable" {
		return overview.LevelProblem
	}
	return overview.LevelWarning // it may work all the same
}

// next is the next step, where it is another one than that of the code.
func (p modelProblem) next() string {
	switch p.code {
	case "credential-refused":
		return "copy the key again from the provider, then: claybot setup model"
	case "model-not-listed":
		return "choose another one with: claybot setup model"
	case "model-no-list":
		return "look whether model.base_url ends as the provider writes it, mostly in /v1; then: claybot setup model"
	}
	return ""
}
