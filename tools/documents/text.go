package documents

import (
	"context"

	"github.com/claybot/claybot/tools"
)

// Text returns the content of a file, which need not be text, as the tool read_file of the same call would
// read it, and whether it is untrusted. Its errors are those of a Backend.
func Text(ctx context.Context, b Source, env tools.Env, path string) (text string, tainted bool, err error) {
	files, err := b(env)
	if err != nil {
		return "", false, err
	}
	if text, err = files.Read(ctx, path); err != nil {
		return "", false, err
	}
	tainted, err = untrusted(ctx, files, path)
	return text, tainted, err
}
