package metrics

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails when a test leaves a goroutine of this package, or of what it
// uses, behind.
func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if left := leftBehind(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines were left behind:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leftBehind waits until no goroutine is at work for us any more, and returns
// those that do not end.
func leftBehind() string {
	deadline := time.Now().Add(time.Minute)
	for {
		buf := make([]byte, 1<<20)
		var left []string
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			ours := strings.Contains(g, "claybot/web/metrics.(*") || strings.Contains(g, "claybot/agentsystem.") || strings.Contains(g, "net/http.(*persistConn)")
			if ours && !strings.Contains(g, "metrics.leftBehind") {
				left = append(left, g)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
		runtime.Gosched()
	}
}
