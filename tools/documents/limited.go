package documents

import (
	"context"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// Limited is a source within the directories that the permissions of a call name: other
// files are neither read, written nor listed.
func Limited(source Source, permissions func(env tools.Env) (claybot.Permissions, error)) Source {
	return func(env tools.Env) (Backend, error) {
		p, err := permissions(env)
		if err != nil {
			return nil, broken("reading the permissions", err)
		}
		backend, err := source(env)
		if err != nil || !p.Confined() {
			return backend, err
		}
		return limited{backend, p}, nil
	}
}

type limited struct {
	Backend
	may claybot.Permissions
}

func (l limited) Read(ctx context.Context, path string) (string, error) {
	if !l.may.MayRead(path) {
		return "", fail(Denied, "reading %.200q is not permitted", path)
	}
	return l.Backend.Read(ctx, path)
}

func (l limited) Write(ctx context.Context, path, text string) error {
	if !l.may.MayWrite(path) {
		return fail(Denied, "writing %.200q is not permitted", path)
	}
	return l.Backend.Write(ctx, path, text)
}

func (l limited) Remove(ctx context.Context, path string) error {
	if !l.may.MayWrite(path) {
		return fail(Denied, "removing %.200q is not permitted", path)
	}
	return l.Backend.Remove(ctx, path)
}

func (l limited) List(ctx context.Context, folder string) ([]File, error) {
	files, err := l.Backend.List(ctx, folder)
	return slices.DeleteFunc(files, func(f File) bool { return !l.may.MayRead(f.Path) }), err
}
