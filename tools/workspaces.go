package tools

import (
	"errors"

	"github.com/claybot/claybot/workspace"
)

// WorkspaceFault is what a call says when its workspace failed: the code and the
// text of the error, with the end of what a command wrote. Other errors, and the
// end of a context, stay as they are.
func WorkspaceFault(err error) error {
	e, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return err
	}
	f := &Fault{Code: string(e.Code), Text: e.Text, Retriable: e.Code == workspace.Unavailable}
	if e.Output != "" {
		f.Text += "\nThe end of what it wrote:\n" + e.Output
	}
	return f
}
