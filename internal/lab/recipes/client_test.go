package recipes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

const (
	// patience is how long the client waits for one answer, and pause is how long it waits
	// before it asks again.
	patience = 50 * time.Millisecond
	pause    = 5 * time.Millisecond
)

// question asks the service at an address once, from the machine of the caller.
type question func(addr netip.Addr) error

// client asks the service at the floating address all the time.
type client struct {
	t    testing.TB
	host *netns.Host
	ask  question
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	answers []time.Time
	last    error
}

func newClient(t testing.TB, c *cluster.Cluster, ask question) *client {
	ctx, stop := context.WithCancel(t.Context())
	a := &client{t: t, host: c.LAN.Client(), ask: ask, stop: stop}
	a.done.Go(func() {
		for ctx.Err() == nil {
			a.once()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
	t.Cleanup(a.close)
	return a
}

func (a *client) close() {
	a.stop()
	a.done.Wait()
}

func (a *client) once() {
	err := a.host.Do(func() error { return a.ask(cluster.Address) })
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.last = err
		return
	}
	a.answers = append(a.answers, time.Now())
}

// answered waits for an answer after a moment.
func (a *client) answered(what string, since time.Time) {
	a.t.Helper()
	assert.NoError(a.t, cluster.Until(what, func() string {
		a.mu.Lock()
		defer a.mu.Unlock()
		if n := len(a.answers); n > 0 && a.answers[n-1].After(since) {
			return ""
		}
		return fmt.Sprintf("the client gets no answer: %v", a.last)
	}))
}

// waited is the longest time without an answer that ended since a moment.
func (a *client) waited(since time.Time) (longest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := 1; i < len(a.answers); i++ {
		if a.answers[i].After(since) {
			longest = max(longest, a.answers[i].Sub(a.answers[i-1]))
		}
	}
	return longest
}

// overUDP sends a question to an address. An answer from elsewhere does not count.
func overUDP(to netip.AddrPort, question []byte) ([]byte, error) {
	network := "udp4"
	if to.Addr().Is6() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := conn.WriteToUDPAddrPort(question, to); err != nil {
		return nil, err
	}
	answer := make([]byte, 1500)
	n, from, err := conn.ReadFromUDPAddrPort(answer)
	if err == nil && from != to {
		err = fmt.Errorf("%v was asked, and %v answers", to, from)
	}
	return answer[:n], err
}

// overTCP opens a connection on which everything must be done in time.
func overTCP(to netip.AddrPort) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: patience}).Dial("tcp", to.String())
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(patience))
}

// dnsQuestion asks for the address of the name that is in the recipes.
var dnsQuestion = func() []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 1, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("dns.home.arpa."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	text, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return text
}()

func dnsByUDP(addr netip.Addr) error {
	answer, err := overUDP(netip.AddrPortFrom(addr, 53), dnsQuestion)
	if err != nil {
		return err
	}
	return judgeDNS(answer)
}

func dnsByTCP(addr netip.Addr) error {
	conn, err := overTCP(netip.AddrPortFrom(addr, 53))
	if err != nil {
		return err
	}
	defer conn.Close()
	// The length is in front of each message (RFC 1035, section 4.2.2).
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(dnsQuestion))), dnsQuestion...)); err != nil {
		return err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	answer := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	return judgeDNS(answer)
}

func judgeDNS(answer []byte) error {
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return err
	}
	if m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) == 0 {
		return fmt.Errorf("%v with %d records", m.RCode, len(m.Answers))
	}
	return nil
}

// askNTP asks for the time.
func askNTP(addr netip.Addr) error {
	const (
		version4Client = 4<<3 | 3
		alarm          = 3 // the server is not synchronised
	)
	request := make([]byte, 48)
	request[0] = version4Client
	answer, err := overUDP(netip.AddrPortFrom(addr, 123), request)
	if err != nil {
		return err
	}
	if len(answer) < len(request) || answer[0]>>6 == alarm || answer[1] == 0 {
		return fmt.Errorf("the server is not synchronised: % x", answer)
	}
	return nil
}

// askHTTP asks for the first page, and expects a body.
func askHTTP(body string) question {
	return func(addr netip.Addr) error {
		conn, err := overTCP(netip.AddrPortFrom(addr, 80))
		if err != nil {
			return err
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: home.example\r\nConnection: close\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK || string(text) != body {
			return fmt.Errorf("%s: %q", response.Status, text)
		}
		return nil
	}
}

const mqttUser, mqttPassword = "sensor", "secret"

// askMQTT connects to a broker as a user (MQTT 3.1.1, section 3.1).
func askMQTT(addr netip.Addr) error {
	conn, err := overTCP(netip.AddrPortFrom(addr, 1883))
	if err != nil {
		return err
	}
	defer conn.Close()
	field := func(b []byte, text string) []byte {
		return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
	}
	const cleanSessionAndLogin = 0xc2
	variable := append(field(nil, "MQTT"), 4, cleanSessionAndLogin, 0, 60)
	for _, text := range []string{"topdog-test", mqttUser, mqttPassword} {
		variable = field(variable, text)
	}
	if _, err := conn.Write(append([]byte{0x10, byte(len(variable))}, variable...)); err != nil {
		return err
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if accepted := []byte{0x20, 2, 0, 0}; !bytes.Equal(answer, accepted) {
		return fmt.Errorf("the broker refuses: % x", answer)
	}
	return nil
}

const (
	homePage    = "home"
	behindProxy = "behind the proxy"
)

// runWebServers runs the two servers behind the proxy of the recipe.
func runWebServers(t testing.TB, c *cluster.Cluster) {
	for _, own := range []string{"10.77.0.31/24", "10.77.0.32/24"} {
		prefix := netip.MustParsePrefix(own)
		assert.NoError(t, c.LAN.Client().AddAddress(prefix))
		listener, err := netns.Within(c.LAN.Client(), func() (net.Listener, error) {
			return net.Listen("tcp4", netip.AddrPortFrom(prefix.Addr(), 80).String())
		})
		assert.NoError(t, err)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, behindProxy) })}
		var served sync.WaitGroup
		served.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
		t.Cleanup(func() {
			server.Close()
			served.Wait()
		})
	}
}

// runTimeServer runs the server on the network from which the boards get the time.
func runTimeServer(t testing.TB, c *cluster.Cluster) {
	dir := t.TempDir()
	write(t, dir+"/chrony.conf", "local stratum 3\nallow 10.77.0.0/24\ncmdport 0\nbindcmdaddress /\npidfile "+dir+"/chrony.pid\n")
	_, err := c.LAN.Client().Start(t.Context(), "/usr/sbin/chronyd", []string{"-x", "-d", "-U", "-u", "root", "-f", dir + "/chrony.conf"})
	assert.NoError(t, err)
}
