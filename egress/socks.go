package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// SOCKS version 5 is RFC 1928: connections by TCP, to names that the proxy looks up or to
// addresses, without authentication. What it has beyond that, to listen and to send by UDP,
// is refused.
const (
	socksVersion = 5
	socksConnect = 1

	socksNoAuth = 0
	socksNoWay  = 0xff

	socksIPv4 = 1
	socksName = 3
	socksIPv6 = 4

	socksOK          = 0
	socksFailed      = 1
	socksRefused     = 2
	socksUnreachable = 4
	socksClosed      = 5
	socksNoCommand   = 7
	socksNoAddress   = 8
)

// asksForSocks reports whether a client begins with SOCKS, which no request of HTTP does.
func (s *session) asksForSocks() bool {
	s.head.left = maxHead
	idle := time.AfterFunc(headLimit, func() { _ = s.conn.Close() })
	defer idle.Stop()
	first, err := s.in.Peek(1)
	return err == nil && first[0] == socksVersion
}

func (s *session) socks(ctx context.Context) {
	idle := time.AfterFunc(headLimit, func() { _ = s.conn.Close() })
	address, ok := s.socksRequest()
	if !idle.Stop() || !ok {
		return
	}
	s.head.left = math.MaxInt64
	e := &entry{log: s.proxy.door.log, start: time.Now(), Request: Request{Method: "SOCKS", Host: shorten(address)}}
	if t, err := parseTarget(address); err == nil {
		e.Host = t.String()
	}
	there, err := s.proxy.door.DialContext(ctx, "tcp", address)
	if err != nil {
		e.end(err)
		s.socksAnswer(socksCode(err))
		return
	}
	s.carry(ctx, there, socksReply(socksOK), e)
}

// socksRequest reads what a client wants; false: it has its answer, or is gone.
func (s *session) socksRequest() (address string, ok bool) {
	var head [2]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return "", false
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(s.in, methods); err != nil {
		return "", false
	}
	method := byte(socksNoAuth)
	if !slices.Contains(methods, method) {
		method = socksNoWay
	}
	if _, err := s.out.Write([]byte{socksVersion, method}); err != nil || s.out.Flush() != nil || method == socksNoWay {
		return "", false
	}
	var request [4]byte
	if _, err := io.ReadFull(s.in, request[:]); err != nil || request[0] != socksVersion {
		return "", false
	}
	host, known, err := s.socksHost(request[3])
	var port [2]byte
	if err == nil {
		_, err = io.ReadFull(s.in, port[:])
	}
	switch {
	case err != nil:
		return "", false
	case !known:
		s.socksAnswer(socksNoAddress)
		return "", false
	case request[1] != socksConnect:
		s.socksAnswer(socksNoCommand)
		return "", false
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:])))), true
}

func (s *session) socksHost(kind byte) (host string, known bool, err error) {
	size := 0
	switch kind {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		n, err := s.in.ReadByte()
		if err != nil {
			return "", false, err
		}
		size = int(n)
	default:
		return "", false, nil
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(s.in, b); err != nil {
		return "", false, err
	}
	if kind == socksName {
		return string(b), true, nil
	}
	a, _ := netip.AddrFromSlice(b)
	return a.String(), true, nil
}

func (s *session) socksAnswer(code byte) {
	_, _ = s.out.WriteString(socksReply(code))
	_ = s.out.Flush() // a client that is gone hears nothing
}

// socksReply is an answer without the address from which the proxy connects.
func socksReply(code byte) string {
	return string([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
}

func socksCode(err error) byte {
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return socksRefused
	}
	_, name := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksClosed
	case name, errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return socksUnreachable
	}
	return socksFailed
}
