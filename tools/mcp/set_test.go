package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/workspace"
)

// named is a server of that name.
func named(t *testing.T, name string, env ...string) mcp.Server {
	s := self(t, "good", env...)
	s.Name = name
	return s
}

// A change of the servers ends those that are gone or others now, and leaves the rest connected.
func TestSet(t *testing.T) {
	ear, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	stays, goes := named(t, "stays"), named(t, "goes", "MCP_TEST_HOLD="+ear.Addr().String())
	r := run(t, mcp.Config{Servers: []mcp.Server{stays, goes}})
	r.up("stays")
	r.up("goes")
	r.want("goes_spawn", `{"text":""}`, "spawned")
	child, err := ear.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	lines := bufio.NewReader(child)
	if s, err := lines.ReadString('\n'); s != "here\n" {
		t.Fatal(s, err)
	}
	since, kept := r.status("stays").Since, r.tool("goes_echo")

	stopped := goes
	stopped.Stopped = true
	r.Set([]mcp.Server{stays, stopped})
	if st := r.status("goes"); st.State != mcp.StateStopped || len(st.Tools) > 0 {
		t.Errorf("stopped: %+v", st)
	}
	if err := child.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadByte(); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the child of the stopped server goes on: %v", err)
	}
	r.await(func() bool {
		_, err := kept.Call(t.Context(), tools.Env{}, json.RawMessage(`{"text":"x"}`))
		return strings.HasSuffix(fmt.Sprint(err), "is stopped")
	})

	r.Set([]mcp.Server{stays, goes})
	r.connected("goes")
	r.want("goes_echo", `{"text":"again"}`, "again") // what was allowed still is
	other := goes
	other.Container.Spec.Image = "another image"
	r.Set([]mcp.Server{stays, other, named(t, "new")})
	r.connected("goes")
	r.connected("new")
	r.Set([]mcp.Server{stays})
	if all := r.Status(); len(all) != 1 || all[0].Since != since || all[0].Restarts != 0 {
		t.Errorf("the server that stays: %+v, connected since %v", all, since)
	}
	r.want("stays_echo", `{"text":"there"}`, "there")
	r.Set([]mcp.Server{stays, {Name: "bad"}})
	if st := r.status("bad"); st.State != mcp.StateRefused || st.LastError == "" {
		t.Errorf("a bad server: %+v", st)
	}
}

// A server whose name another one had first is connected once that is gone.
func TestSetNameGivenTwice(t *testing.T) {
	first, second := named(t, "srv", "VERSION=1"), named(t, "srv", "VERSION=2")
	r := run(t, mcp.Config{Servers: []mcp.Server{first, second}})
	r.Set([]mcp.Server{second})
	r.up("srv")
}

// After any order of changes exactly the last servers are connected, and no process is left over.
func TestSetAtRandom(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	r := run(t, mcp.Config{})
	var asking sync.WaitGroup
	defer asking.Wait()
	over := make(chan struct{})
	defer close(over)
	asking.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				_, _, _ = r.Status(), r.Tools(nil), r.Retry("a")
			}
		}
	})
	var last []mcp.Server
	for range 60 {
		last = nil
		for _, name := range []string{"a", "b", "c"} {
			if random.IntN(3) == 0 {
				continue
			}
			s := named(t, name, fmt.Sprintf("VERSION=%d", random.IntN(2)))
			s.Stopped = random.IntN(3) == 0
			last = append(last, s)
		}
		r.Set(last)
	}
	for _, s := range last {
		if s.Stopped {
			if st := r.status(s.Name); st.State != mcp.StateStopped {
				t.Errorf("seed %d: %+v", seed, st)
			}
			continue
		}
		r.up(s.Name)
		r.await(func() bool { return len(r.status(s.Name).Tools) > 0 })
		r.want(s.Name+"_echo", `{"text":"x"}`, "x")
	}
	if all := r.Status(); len(all) != len(last) {
		t.Errorf("seed %d: %d servers, want %d", seed, len(all), len(last))
	}
}

// A server starts in the container that it was made for, whatever others of its name there are by then.
func TestPipeGetsItsServer(t *testing.T) {
	serve := pipes(func(_ int, s *script) { s.serve(always(listed()), nil) })
	images := make(chan string, 10)
	of := func(image string) []mcp.Server {
		s := scripted[0]
		s.Container.Spec.Image = image
		return []mcp.Server{s}
	}
	r := run(t, mcp.Config{Servers: of("first"), Pipe: func(ctx context.Context, s mcp.Server, c workspace.Command) (workspace.Process, error) {
		images <- s.Container.Spec.Image
		return serve(ctx, s, c)
	}})
	r.connected("srv")
	r.Set(of("second"))
	r.connected("srv")
	if first, second := <-images, <-images; first != "first" || second != "second" {
		t.Errorf("the servers start in %q and %q", first, second)
	}
}
