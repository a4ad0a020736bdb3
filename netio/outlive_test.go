package netio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

// holdVariable makes the test binary a daemon that does nothing but hold the
// address, by the method that the variable gives, so that there is a process to kill.
const holdVariable = "TOPDOG_TEST_HOLD"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == holderWord {
		os.Exit(attend())
	}
	for variable, be := range map[string]func(value string) error{
		holdVariable: hold, armedVariable: holdArmed, serviceVariable: attendService,
	} {
		if value := os.Getenv(variable); value != "" {
			if err := be(value); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			return
		}
	}
	// With -race, a process sleeps for a second before it ends; a holder must not.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	os.Exit(m.Run())
}

// hold acquires the address, says "acquired", and renews it until standard input
// ends. Like the daemon it renews four times in a lifetime.
func hold(method string) error {
	n, err := strconv.Atoi(method)
	if err != nil {
		return err
	}
	f, err := NewFloatingIP(FloatingOptions{Interface: "eth0", Addresses: []netip.Prefix{testFloating}, Method: HoldMethod(n)})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Acquire(); err != nil {
		return err
	}
	fmt.Println("acquired")
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for pause(ended, DefaultLifetime/4) {
		if _, err := f.Renew(); errors.Is(err, ErrExpired) {
			fmt.Println("expired")
			<-ended
		} else if err != nil {
			return err
		}
	}
	return nil
}

// subprocess is a running process of this test binary.
type subprocess struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *os.File
	lines  *bufio.Scanner
}

func startHolding(t testing.TB, b *board, method HoldMethod) *subprocess {
	t.Helper()
	h := startProcess(t, b, holdVariable+"="+strconv.Itoa(int(method)))
	assert.Is(t, "acquired", h.line(t), "the process says")
	return h
}

// startProcess starts the test binary on a board, as what the variable makes of it.
func startProcess(t testing.TB, b *board, variable string) *subprocess {
	t.Helper()
	h := &subprocess{cmd: exec.Command("/proc/self/exe")}
	h.cmd.Env = append(os.Environ(), variable)
	h.cmd.Stderr = os.Stderr
	stdout, err := h.cmd.StdoutPipe()
	must(t, err)
	h.stdout = stdout.(*os.File)
	h.lines = bufio.NewScanner(stdout)
	h.stdin, err = h.cmd.StdinPipe()
	must(t, err)
	b.do(t, h.cmd.Start) // a child starts in the namespace of the thread that made it
	t.Cleanup(h.end)
	return h
}

// line waits for the next line that the process says.
func (h *subprocess) line(t testing.TB) string {
	t.Helper()
	must(t, h.stdout.SetReadDeadline(time.Now().Add(testTimeout)))
	if !h.lines.Scan() {
		t.Fatalf("the process says nothing: %v", h.lines.Err())
	}
	return h.lines.Text()
}

// end makes sure that the process is gone. It may be called more than once.
func (h *subprocess) end() {
	if h.cmd.ProcessState == nil {
		h.cmd.Process.Kill()
		h.cmd.Wait()
	}
}

func TestAddressDoesNotOutlive(t *testing.T) {
	t.Parallel()
	needTUN(t)
	for _, method := range testedMethods {
		t.Run("SIGKILL "+method.String(), judged(func(t *judge.T) {
			b := newLAN(t, 1).boards[0]
			h := startHolding(t, b, method)
			must(t, h.cmd.Process.Kill())
			eventually(t, "the address is gone", func() bool { return !b.has(t, "", testVIP) })
		}))
	}
	t.Run("SIGSTOP, SIGCONT", judged(func(t *judge.T) {
		b := newLAN(t, 1).boards[0]
		h := startHolding(t, b, HoldTUN)
		must(t, h.cmd.Process.Signal(syscall.SIGSTOP))
		eventually(t, "the address is gone", func() bool { return !b.has(t, "", testVIP) })
		must(t, h.cmd.Process.Signal(syscall.SIGCONT))
		assert.Is(t, "expired", h.line(t), "the process says")
		assert.Is(t, false, b.has(t, "", testVIP), "the process that woke up took the address back")
	}))
}

// BenchmarkOutlive measures how long the address outlives a killed or a frozen
// holder: until the kernel has removed it (RTM_DELADDR), and until a neighbour
// that asks every millisecond got its last ARP reply. docs/address.md has the
// results. An iteration takes up to 3 s, so give the number of runs:
//
//	go test ./netio -run '^$' -bench Outlive/SIGKILL -benchtime 20x
//	go test ./netio -run '^$' -bench Outlive/SIGSTOP -benchtime 10x
func BenchmarkOutlive(b *testing.B) {
	needTUN(b)
	for _, signal := range []struct {
		name   string
		number syscall.Signal
	}{{"SIGKILL", syscall.SIGKILL}, {"SIGSTOP", syscall.SIGSTOP}} {
		for _, method := range testedMethods {
			b.Run(signal.name+"/"+method.String(), func(b *testing.B) {
				l := newLAN(b, 2)
				var removed, answered []time.Duration
				kept := 0
				for range b.N {
					r, a, ok := outlive(b, l, method, signal.number)
					if !ok {
						kept++
						continue
					}
					removed, answered = append(removed, r), append(answered, a)
				}
				report(b, "removed", removed)
				report(b, "ARP", answered)
				b.ReportMetric(float64(kept), "kept-for-3s")
				b.ReportMetric(0, "ns/op") // setting up and waiting: not a figure
			})
		}
	}
}

// outlive lets a process hold the address, signals it at a random moment between
// two renewals, and returns how long after the signal the address was still
// there and still answered for. It is not ok if the address was kept.
func outlive(t testing.TB, l *lan, method HoldMethod, signal syscall.Signal) (removed, answered time.Duration, ok bool) {
	t.Helper()
	b, client := l.boards[0], l.boards[1]
	gone := addressGone(t, b.ns, testVIP)
	defer gone.stop()
	h := startHolding(t, b, method)
	defer h.end()

	eth0 := client.link(t, "eth0")
	arp, err := client.openAnnouncer(eth0.Index)
	must(t, err)
	defer arp.Close()
	var last atomic.Int64
	arp.Rivals([]netip.Addr{testVIP}, func(netip.Addr, net.HardwareAddr) { last.Store(int64(Now())) })
	stop := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for pause(stop, time.Millisecond) {
			arp.socket.send(broadcast, probe(testVIP))
		}
	})
	defer asking.Wait()
	defer close(stop)
	eventually(t, "the address is answered for", func() bool { return last.Load() != 0 })

	pause(nil, DefaultLifetime/4+rand.N(DefaultLifetime/4))
	start := Now()
	must(t, h.cmd.Process.Signal(signal))
	select {
	case at := <-gone.at:
		pause(nil, 20*time.Millisecond) // replies that are under way
		return at - start, max(0, time.Duration(last.Load())-start), true
	case <-time.After(3 * time.Second):
		return 0, 0, false
	}
}

// departure tells when an address went.
type departure struct {
	at   chan time.Duration
	stop func()
}

func addressGone(t testing.TB, ns netns.NsHandle, addr netip.Addr) departure {
	t.Helper()
	updates, done := make(chan netlink.AddrUpdate, 100), make(chan struct{})
	must(t, netlink.AddrSubscribeWithOptions(updates, done, netlink.AddrSubscribeOptions{
		Namespace: &ns, ErrorCallback: func(error) {},
	}))
	d := departure{at: make(chan time.Duration, 1)}
	var reading sync.WaitGroup
	reading.Go(func() {
		for u := range updates {
			if p, ok := prefixOf(&u.LinkAddress); ok && p.Addr() == addr && !u.NewAddr {
				select {
				case d.at <- Now():
				default:
				}
			}
		}
	})
	d.stop = func() {
		close(done)
		reading.Wait()
	}
	return d
}

func report(b *testing.B, what string, all []time.Duration) {
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(all[0]), what+"-min-ms")
	b.ReportMetric(ms(all[len(all)/2]), what+"-median-ms")
	b.ReportMetric(ms(all[len(all)-1]), what+"-max-ms")
}

// BenchmarkFloatingIP is what acquiring, releasing and renewing cost a running daemon.
func BenchmarkFloatingIP(b *testing.B) {
	needTUN(b)
	for _, method := range testedMethods {
		board := newLAN(b, 1).boards[0]
		f := openFloating(b, board, FloatingOptions{Method: method})
		b.Run("acquire and release/"+method.String(), func(b *testing.B) {
			for b.Loop() {
				must(b, f.Acquire())
				must(b, f.Release())
			}
		})
		b.Run("renew/"+method.String(), func(b *testing.B) {
			must(b, f.Acquire())
			for b.Loop() {
				_, err := f.Renew()
				assert.NoError(b, err)
			}
			must(b, f.Release())
		})
	}
}
