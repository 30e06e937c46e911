package main

import (
	"log"
	"os"
	"testing"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	asSaboteur()
	asIdle()
	if err := os.Chdir("../.."); err != nil { // the rig works at the root of the tree
		log.Fatal(err)
	}
	code := postgrestest.Main(m)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a rest in the temporary directory does no harm
	}
	os.Exit(code)
}
