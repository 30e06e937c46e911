package main

import (
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/storage"
)

// The secret of addresses that programs call moves from a cluster to a directory and back.
func TestCallbacksSecretIsCarried(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "data")
	const path, secret = "flows/callbacks.json", `"not-a-real-secret"`
	tree := storage.Table{Name: storage.TableTree, Columns: []string{"path", "body", "at"}}
	to, err := createDirectory(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	err = to.Load(ctx, tree, func(yield func(storage.Row, error) bool) {
		yield(storage.Row{path, []byte(secret), int64(1700000001000)}, nil)
	})
	if err == nil {
		err = to.finish(ctx)
	}
	to.close()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fileSecrets(dir, callbacksFolder).Get(callbacksSecret); err != nil || string(got) != secret {
		t.Errorf("the directory has %q, %v", got, err)
	}
	from, err := openDirectory(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	var paths []string
	for r, err := range from.Rows(ctx, tree) {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, r[0].(string)+" "+string(r[1].([]byte)))
	}
	if len(paths) != 1 || paths[0] != path+" "+secret {
		t.Errorf("read %q", paths)
	}
}
