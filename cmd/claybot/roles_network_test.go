package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Over the network no token takes a role: neither by ending the access, nor by erasing the person. On
// the machine both do.
func TestRolesOverTheNetwork(t *testing.T) {
	h := startDaemon(t, "model: demo\naccess:\n  allow: [telegram:9]\n", map[string]string{"CLAYBOT_HTTP_ADDR": "127.0.0.1:0"})
	var made struct{ Token string }
	h.config(http.StatusCreated, "POST", "/tokens", "", `{"name":"desk","scope":"admin"}`, &made)
	h.config(http.StatusOK, "PUT", "/people/telegram:9/role", "", `{"role":"operator"}`, nil)
	for _, path := range []string{"/pairing/telegram:9", "/people/telegram:9"} {
		req, err := http.NewRequestWithContext(h.ctx, http.MethodDelete, "http://"+h.daemon.listeners.addr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+made.Token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "cannot be taken over the network") {
			t.Errorf("DELETE %s = %d %s, %v", path, resp.StatusCode, text, err)
		}
	}
	req, err := http.NewRequestWithContext(h.ctx, http.MethodPut, "http://"+h.daemon.listeners.addr()+"/config/access.allow", strings.NewReader(`{"value":"[telegram:8]"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+made.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "cannot be taken over the network") {
		t.Errorf("a change of access.allow = %d %s, %v", resp.StatusCode, text, err)
	}
	if got := h.config(http.StatusOK, "GET", "/people/telegram:9", "", "", nil); !strings.Contains(got, `"operator"`) {
		t.Errorf("the role is gone: %s", got)
	}
	h.config(http.StatusOK, "DELETE", "/pairing/telegram:9", "", "", nil)
	if got := h.config(http.StatusOK, "GET", "/people/telegram:9", "", "", nil); strings.Contains(got, `"operator"`) {
		t.Errorf("the role is still there: %s", got)
	}
}
