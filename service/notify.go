package service

import (
	"net"
	"os"
)

// Ready tells systemd that the daemon is ready. It does nothing, as all others of its
// kind, where systemd did not start this process.
func Ready() error { return notify("READY=1") }

// Stopping tells systemd that the daemon ends.
func Stopping() error { return notify("STOPPING=1") }

// notify sends a datagram to the socket that systemd names: sd_notify(3).
func notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"}) // a name with @ is abstract
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	if closed := conn.Close(); err == nil {
		err = closed
	}
	return err
}
