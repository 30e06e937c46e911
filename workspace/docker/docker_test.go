package docker

import (
	"context"
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/workspacetest"
)

// testImage is made by scripts/docker.sh.
const testImage = "claybot-test:busybox"

// provider is one of its own for a test, on a real engine. Where there is none the
// test is skipped, unless all must run.
func provider(t testing.TB, change ...func(*Config)) *Provider {
	t.Helper()
	cfg := Config{Node: "test-" + sum(t.Name(), time.Now().String()), Image: testImage}
	for _, c := range change {
		c(&cfg)
	}
	p := New(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := p.Check(ctx)
	if err == nil {
		var e *engine
		if e, err = p.connect(); err == nil {
			_, err = e.inspect(ctx, testImage)
		}
	}
	if err != nil {
		_ = p.Close()
		if os.Getenv("CI") == "true" {
			t.Fatalf("no Docker engine with the image %s, and with CI=true all tests run: %v", testImage, err)
		}
		t.Skipf("no Docker engine with the image %s; scripts/docker.sh makes both: %v", testImage, err)
	}
	t.Cleanup(func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
		defer cancel()
		infos, err := p.List(clean)
		if err != nil {
			t.Error(err)
		}
		for _, i := range infos {
			if err := p.Remove(clean, i.Key, true); err != nil {
				t.Error(err)
			}
		}
		// An opening that failed leaves the files for the next one.
		if e, err := p.connect(); err == nil {
			list, _ := e.api.VolumeList(clean, volume.ListOptions{Filters: p.filter(roleData, "")})
			for _, v := range list.Volumes {
				if err := e.api.VolumeRemove(clean, v.Name, true); err != nil {
					t.Error(err)
				}
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestMain lets more tests run at once than there are processors: most of their
// time is waiting for the engine, or for a limit.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set("6")
	}
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	workspacetest.Test(t, func(t *testing.T) workspace.Provider { return provider(t) }, workspacetest.Options{
		Spec: workspace.Spec{Image: testImage}, Host: []string{"HOME=" + os.Getenv("HOME")},
	})
}
