package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// What others wrote is the file that they published, with its licence.
func TestVendoredFiles(t *testing.T) {
	raw, err := fs.ReadFile(assets, "assets/vendor/vendor.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Name, Version, License, LicenseFile, File, SHA256, From string }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	listed := []string{"vendor.json"}
	for _, v := range list {
		listed = append(listed, v.File, v.LicenseFile)
		b, err := fs.ReadFile(assets, "assets/vendor/"+v.File)
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != v.SHA256 {
			t.Errorf("%s is not that of %s %s", v.File, v.Name, v.Version)
		}
		if text, err := fs.ReadFile(assets, "assets/vendor/"+v.LicenseFile); err != nil || len(text) < 200 {
			t.Errorf("the licence of %s: %d bytes, %v", v.Name, len(text), err)
		}
		if v.Name == "" || v.Version == "" || v.License == "" || v.From == "" {
			t.Errorf("%+v says too little", v)
		}
	}
	if len(list) == 0 {
		t.Error("nothing is listed")
	}
	files, err := fs.ReadDir(assets, "assets/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(listed, f.Name()) {
			t.Errorf("%s is not listed", f.Name())
		}
	}
}

// The policy of the page allows nothing inline, so nothing inline may be there.
func TestNothingInline(t *testing.T) {
	err := fs.WalkDir(templates, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(templates, name)
		if err != nil {
			return err
		}
		text := strings.ToLower(string(b))
		for _, bad := range []string{" style=", "<style", "javascript:", "hx-on", "hx-vals=\"js:", "http://", "https://", " onclick", " onload", " onsubmit", " onchange"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
		for _, script := range strings.SplitAfter(text, "<script")[1:] {
			if !strings.Contains(strings.SplitN(script, ">", 2)[0], " src=") {
				t.Errorf("%s has an inline script", name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
