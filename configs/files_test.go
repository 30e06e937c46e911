package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

func TestFiles(t *testing.T) {
	for _, tt := range []struct {
		url  string
		want configs.Files
	}{
		{"s3://files", configs.Files{Bucket: "files"}},
		{"s3://files/", configs.Files{Bucket: "files"}},
		{"s3://my.files-1/a/b_c/", configs.Files{Bucket: "my.files-1", Prefix: "a/b_c/"}},
		{"s3://files?region=eu-central-1", configs.Files{Bucket: "files", Region: "eu-central-1"}},
		{"s3://files/p?endpoint=https://s3.example.org:9000/&path_style=true", configs.Files{Bucket: "files", Prefix: "p/", Endpoint: "https://s3.example.org:9000", Addressing: configs.AddressingPath}},
		{"s3://files?endpoint=http%3A%2F%2F127.0.0.1:9000&path_style=false&region=x", configs.Files{Bucket: "files", Endpoint: "http://127.0.0.1:9000", Addressing: configs.AddressingHost, Region: "x"}},
	} {
		tt.want.MaxInline = configs.DefaultInline
		fromFile, warnings := loadText(t, "files: {url: '"+tt.url+"'}", nil)
		if len(warnings) > 0 || fromFile.Storage.Files != tt.want || !fromFile.Storage.Files.Wanted() {
			t.Errorf("%s: %+v, %v; want %+v", tt.url, fromFile.Storage.Files, warnings, tt.want)
		}
		// The environment wins, also over what cannot be used.
		fromEnv, _ := loadText(t, "files: {url: 's3://other/x?region=y&wrong=z'}", map[string]string{"CLAYBOT_FILES_URL": tt.url})
		if fromEnv.Storage.Files != tt.want {
			t.Errorf("%s of the environment: %+v; want %+v", tt.url, fromEnv.Storage.Files, tt.want)
		}
	}
	for _, text := range []string{"", "files:", "files: {url: ''}", "files: {max_inline: 1m}"} {
		c, warnings := loadText(t, text, map[string]string{"AWS_ACCESS_KEY_ID": "of something else"})
		if len(warnings) > 0 || c.Storage.Files.Wanted() {
			t.Errorf("%q: %+v, %v; want no store of files", text, c.Storage.Files, warnings)
		}
	}
}

// An address that cannot be used must not mean that files go elsewhere, and is
// not repeated.
func TestFilesBroken(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"files", "is not an address such as s3://bucket"},
		{"https://files.example.org", "is not an address such as s3://bucket"},
		{"s3:files", "is not an address such as s3://bucket"},
		{"s3://", "wants the name of a bucket"},
		{"s3:///prefix", "wants the name of a bucket"},
		{"s3://Files", "wants the name of a bucket"},
		{"s3://a..b", "wants the name of a bucket"},
		{"s3://files:9000", "wants the name of a bucket"},
		{"s3://xx-key:hush-hush@files", "must not hold a key"},
		{"s3://files?secret_key=hush-hush", "a key never"},
		{"s3://files?AWS_SECRET_ACCESS_KEY=hush-hush", "a key never"},
		{"s3://files?region=hush hush", "the region is not"},
		{"s3://files?region=a&region=b", "says something twice"},
		{"s3://files?endpoint=s3.example.org", "the endpoint is not"},
		{"s3://files?endpoint=https://k:hush-hush@s3.example.org", "the endpoint is not"},
		{"s3://files?endpoint=https://s3.example.org/path", "the endpoint is not"},
		{"s3://files?path_style=maybe", "path_style is not one of"},
		{"s3://files?a=%zz", "cannot be read"},
		{"s3://files/a b", "what stands before"},
		{"s3://files/../x", "what stands before"},
		{"s3://files/a//b", "what stands before"},
		{"s3://files#x", "is not an address such as s3://bucket"},
		{"s3://%zz", "is not an address such as s3://bucket"},
	} {
		for name, load := range map[string]func() (configs.Config, []configs.Warning){
			"files.url": func() (configs.Config, []configs.Warning) { return loadText(t, "files: {url: '"+tt.url+"'}", nil) },
			"CLAYBOT_FILES_URL": func() (configs.Config, []configs.Warning) {
				return loadText(t, "files: {url: 's3://good'}", map[string]string{"CLAYBOT_FILES_URL": tt.url})
			},
		} {
			c, warnings := load()
			if len(warnings) != 1 || !strings.Contains(warnings[0].Text, tt.want) || warnings[0].Key != name {
				t.Errorf("%s %s: said %v, want %q", name, tt.url, warnings, tt.want)
				continue
			}
			if f := c.Storage.Files; f.Bucket != "" || !f.Wanted() || !strings.Contains(f.Fault, tt.want) || !strings.HasPrefix(f.Fault, name) {
				t.Errorf("%s %s: %+v, want a fault and no bucket", name, tt.url, f)
			}
			if said := warnings[0].String() + c.Storage.Files.Fault; strings.Contains(said, "hush") {
				t.Errorf("%s %s: a secret is told: %s", name, tt.url, said)
			}
		}
	}
}

func TestFilesKey(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("fake-of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "files: {access_key: env:KEY, secret_key: 'file:" + secret + "', session_token: env:TOKEN}"
	env := map[string]string{"KEY": "fake-key", "TOKEN": "fake-token"}
	for _, tt := range []struct {
		more                    map[string]string
		access, secret, session string
	}{
		{nil, "fake-key", "fake-of-file", "fake-token"},
		{map[string]string{"AWS_SECRET_ACCESS_KEY": "fake-of-env"}, "fake-key", "fake-of-env", "fake-token"},
		{map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, "a", "b", ""},
		{map[string]string{"AWS_ACCESS_KEY_ID": "a"}, "a", "", ""}, // a foreign secret would fit nothing
		{map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"}, "a", "b", "c"},
	} {
		all := map[string]string{}
		for _, vars := range []map[string]string{env, tt.more} {
			for name, value := range vars {
				all[name] = value
			}
		}
		c, warnings := loadText(t, text, all)
		f := c.Storage.Files
		if len(warnings) > 0 || f.AccessKey.Value() != tt.access || f.SecretKey.Value() != tt.secret || f.SessionToken.Value() != tt.session {
			t.Errorf("%v: %q, %q, %q, %v", tt.more, f.AccessKey.Value(), f.SecretKey.Value(), f.SessionToken.Value(), warnings)
		}
	}
	for _, bad := range []string{"files: {secret_key: hush-hush}", "files: {secret_key: 'env:NOT_SET'}", "files: {access_key: 'file:/nowhere'}"} {
		_, warnings := loadText(t, bad, nil)
		if len(warnings) != 1 || strings.Contains(warnings[0].String(), "hush") {
			t.Errorf("%s: %v", bad, warnings)
		}
	}
}

func TestFilesInline(t *testing.T) {
	for text, want := range map[string]int64{"20m": 20 << 20, "1000": 1000, "256MiB": 256 << 20, "1k": 1 << 10} {
		if c, warnings := loadText(t, "files: {max_inline: "+text+"}", nil); len(warnings) > 0 || c.Storage.Files.MaxInline != want {
			t.Errorf("%s: %d, %v", text, c.Storage.Files.MaxInline, warnings)
		}
	}
	for _, text := range []string{"0", "-1", "257m", "1t", "much", "1.5m", "[1]"} {
		if c, warnings := loadText(t, "files: {max_inline: "+text+"}", nil); len(warnings) != 1 || c.Storage.Files.MaxInline != configs.DefaultInline {
			t.Errorf("%s: %d, %v; want the default and a warning", text, c.Storage.Files.MaxInline, warnings)
		}
	}
}

// Where an address was meant, what was written else counts for nothing.
func TestFilesMeant(t *testing.T) {
	for _, text := range []string{
		"files: {urls: 's3://files'}", "files: {URL: 's3://files'}", "files: {url: ['s3://files']}", "files: ['s3://files']", "files: {url: {a: b}}",
		"a: &a 's3://files'\nfiles: {url: *a}",
	} {
		c, warnings := loadText(t, text, nil)
		if len(warnings) == 0 || c.Storage.Files.Bucket != "" || !c.Storage.Files.Wanted() {
			t.Errorf("%s: %v, %+v", text, warnings, c.Storage.Files)
		}
		if c, _ := loadText(t, text, map[string]string{"CLAYBOT_FILES_URL": "s3://good"}); c.Storage.Files.Bucket != "good" || c.Storage.Files.Fault != "" {
			t.Errorf("%s below the environment: %+v", text, c.Storage.Files)
		}
	}
	if c, warnings := loadText(t, "files: {max_in: 1m}", nil); len(warnings) != 1 || c.Storage.Files.Wanted() {
		t.Errorf("%v, %+v", warnings, c.Storage.Files)
	}
	if c, warnings := loadText(t, "files: s3://files/p", nil); len(warnings) != 0 || c.Storage.Files.Bucket != "files" || c.Storage.Files.Prefix != "p/" {
		t.Errorf("an address alone: %v, %+v", warnings, c.Storage.Files)
	}
}

func FuzzFilesURL(f *testing.F) {
	for _, url := range []string{"s3://files", "s3://files/p?endpoint=https://h&region=r&path_style=true", "s3://a:b@c", "s3://%zz"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		c, _, err := configs.Load(empty(t), func(name string) (string, bool) { return url, name == "CLAYBOT_FILES_URL" })
		if err != nil {
			t.Fatal(err)
		}
		files := c.Storage.Files
		switch {
		case (files.Fault != "") == (files.Bucket != "") && strings.TrimSpace(url) != "":
			t.Errorf("%q: %+v: either a bucket or a fault", url, files)
		case files.Prefix != "" && !strings.HasSuffix(files.Prefix, "/") || strings.Contains(files.Prefix, "//") || strings.HasPrefix(files.Prefix, "/"):
			t.Errorf("%q: the prefix %q", url, files.Prefix)
		}
	})
}

// empty is a configuration file without a setting.
func empty(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claybot.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFilesPerOwner(t *testing.T) {
	for text, want := range map[string]int64{"1k": 1 << 10, "20g": 20 << 30, "0": 0} {
		if c, warnings := loadText(t, "limits: {files_per_owner: "+text+"}", nil); len(warnings) > 0 || c.Limits.FilesPerOwner != want {
			t.Errorf("%s: %d, %v", text, c.Limits.FilesPerOwner, warnings)
		}
	}
	for _, text := range []string{"-1", "1023", "1025t", "much", "none"} {
		c, warnings := loadText(t, "limits: {files_per_owner: "+text+"}", nil)
		if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "is not a size such as 512m or 2g, from 1k to 1024t, nor 0") || c.Limits.FilesPerOwner != configs.DefaultFilesPerOwner {
			t.Errorf("%s: %d, %v; want the default and a warning", text, c.Limits.FilesPerOwner, warnings)
		}
	}
	if c := configs.Default(); c.Limits.FilesPerOwner != 1<<30 {
		t.Errorf("the default is %d", c.Limits.FilesPerOwner)
	}
}
