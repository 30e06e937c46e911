package main

import (
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestDefaultRetention(t *testing.T) {
	c, _, err := configs.Load("", func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := retention(c.Retention), storagetest.Retention; got != want {
		t.Errorf("the configuration keeps %+v, the tests of stores %+v", got, want)
	}
}
