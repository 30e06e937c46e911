package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/claybot/claybot/web"
)

type forgetCmd struct {
	Who  string `arg:"" help:"The person as connector:id, such as telegram:123; their other identities in access.people are included."`
	Yes  bool   `help:"Erase. Without it, claybot only shows what it would erase."`
	Skip bool   `name:"skip-workspaces" help:"Leave workspaces on machines that are gone for good; the output names them."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run shows what claybot keeps of a person, or erases it.
func (c forgetCmd) Run(e *env) error {
	connector, id, err := who(c.Who)
	if err != nil {
		return err
	}
	method, path := "GET", "/people/"+url.PathEscape(connector+":"+id)
	if c.Yes {
		method = "DELETE"
	}
	if c.Yes && c.Skip {
		path += "?workspaces=skip"
	}
	out, err := ask[web.PersonData](e, method, to(path), nil)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out)
	}
	what := "Would erase of"
	if out.Erased {
		what = "Erased of"
	}
	if err := e.text(fmt.Sprintf("%s %s:\n", what, strings.Join(out.Person, ", "))); err != nil {
		return err
	}
	if err := e.table(personRows(out)); err != nil {
		return err
	}
	text := "What stays:\n- " + strings.Join(out.Stays, "\n- ") + "\n"
	switch left := unfinished(out.Unfinished); {
	case out.Erased:
	case left != "":
		text += "Unfinished work must end first: " + left + ".\n"
	default:
		text += "Nothing was erased yet; add --yes to erase it.\n"
	}
	return e.text(text)
}

// personRows are the counts of what is kept of a person, without those that are 0.
func personRows(p web.PersonData) (rows [][]string) {
	for _, x := range []struct {
		what string
		n    int
	}{
		{"agents, with their histories and files", len(p.Agents)},
		{"runs", p.Rows.Runs},
		{"events of runs", p.Rows.Events},
		{"questions", p.Rows.Questions},
		{"messages", p.Rows.Messages},
		{"outgoing messages", p.Rows.Outgoing},
		{"notes, with their versions", p.Rows.Notes},
		{"files of agents in the database", p.Rows.Documents},
		{"reminders", p.Rows.Reminders},
		{"scheduled tasks", p.Tasks},
		{"workspaces", p.Workspaces},
		{"messages in groups, kept as context", p.Rows.Overheard},
		{"language, zone and requests for access", p.Rows.Settings},
		{"grants of access", p.Grants},
	} {
		if x.n > 0 {
			rows = append(rows, []string{"  " + x.what, fmt.Sprint(x.n)})
		}
	}
	if rows == nil {
		rows = [][]string{{"  nothing", ""}}
	}
	return rows
}
