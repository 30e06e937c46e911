package main

import (
	"os"
	"testing"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	asSaboteur()
	code := postgrestest.Main(m)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a rest in the temporary directory does no harm
	}
	os.Exit(code)
}
