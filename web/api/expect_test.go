package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A client that asks before it sends a body which is too large hears at once that it is.
func TestTooLargeIsRefusedBeforeItIsSent(t *testing.T) {
	r := start(t)
	var first acceptedRun
	r.ask("POST", "/agents/runs", `{"text":"one"}`, http.StatusAccepted, &first)
	for _, path := range []string{"/agents/runs", "/v1/chat/completions", "/agents/" + first.Agent + "/files?name=f"} {
		for size, want := range map[int]string{1 << 30: "413", 100: "100"} {
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", path, r.addr, r.token, size)
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) {
				t.Errorf("%s with %d bytes: %q, %v; want %s", path, size, line, err, want)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
