package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/netio"
)

const (
	// endsWithin is how long a service may take to find that it cannot start. nginx tries for 2.5 s.
	endsWithin = 5 * time.Second
	// answersWithin is how long a service may take that is to answer, and silentFor is how long one
	// is asked that is not.
	answersWithin = 3 * time.Second
	silentFor     = 500 * time.Millisecond
)

// vip32 is the floating address as the leader has it.
var vip32 = netip.PrefixFrom(cluster.Address, cluster.Address.BitLen())

// noIPv6 is for the boards of a table. For a second or two, a new interface has an IPv6 address that is not yet good for
// use. As long as there is one, dnsmasq looks for new addresses, which it otherwise does not with some settings.
const noIPv6 = "net.ipv6.conf.eth0.disable_ipv6 = 1"

// row is a line of a table in a recipe: settings, and what comes of them.
type row struct {
	settings []string // lines of the service's configuration, as the table shows them
	sysctls  []string
	starts   bool   // without the address
	tun      string // who is answered when the address comes on a TUN device
	eth0     string // and on the network interface
}

func (r *row) String() string { return strings.Join(append(r.settings, r.sysctls...), ", ") }

var code = regexp.MustCompile("`([^`]*)`")

// rows reads the table of a recipe that begins with "settings".
func rows(t testing.TB, page string) (all []*row) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pages, page))
	assert.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| settings |")
	if !found {
		t.Fatalf("%s has no table of settings", page)
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), "**", ""), "|")
		if line == "\n" {
			break
		}
		if len(cells) != 6 || strings.Contains(line, "---") {
			continue // the rest of the head
		}
		r := &row{starts: strings.TrimSpace(cells[2]) == "yes", tun: strings.TrimSpace(cells[3]), eth0: strings.TrimSpace(cells[4])}
		for _, span := range code.FindAllStringSubmatch(cells[1], -1) {
			if strings.HasPrefix(span[1], "net.") {
				r.sysctls = append(r.sysctls, span[1])
			} else {
				r.settings = append(r.settings, span[1])
			}
		}
		all = append(all, r)
	}
	return all
}

// The tables say how services must listen. Each row is a LAN of its own.
func TestTables(t *testing.T) {
	t.Parallel()
	for i := range services {
		s := &services[i]
		t.Run(s.unit, judge.Of(func(t *judge.T) {
			s.installed(t)
			var done sync.WaitGroup
			for _, r := range rows(t, s.page) {
				c, err := cluster.New(1)
				assert.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, c.Close()) })
				if s.beside != nil {
					s.beside(t, c)
				}
				d := s.installRow(t, c, r)
				done.Go(func() {
					if err := s.try(c.LAN.Client(), d, r); err != nil {
						t.Errorf("%s: %v: %v\n%s", s.page, r, err, d.Log)
					}
				})
			}
			done.Wait()
		}))
	}
}

// installRow writes the configuration of a row.
func (s *service) installRow(t testing.TB, c *cluster.Cluster, r *row) *daemon {
	t.Helper()
	d, err := c.NewDaemon(1)
	assert.NoError(t, err)
	assert.NoError(t, os.Chmod(d.Dir, 0o755))
	text := strings.ReplaceAll(s.base+s.table, "{settings}", strings.Join(r.settings, "\n"))
	write(t, d.Dir+s.main, here(strings.ReplaceAll(text, "{root}", d.Dir), ""))
	for _, one := range r.sysctls {
		assert.NoError(t, setSysctl(d.Host, one))
	}
	if err := setSysctl(d.Host, noIPv6); !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6 is as good
		assert.NoError(t, err)
	}
	return &daemon{d, s.program, s.arguments(d.Dir)}
}

// setSysctl sets a kernel parameter of a board's network, written as in sysctl.conf(5).
func setSysctl(h *netns.Host, line string) error {
	name, value, _ := strings.Cut(line, " = ")
	return h.Do(func() error {
		return os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0)
	})
}

// try says what was not as the table has it.
func (s *service) try(client *netns.Host, d *daemon, r *row) error {
	if !r.starts {
		if err := d.Launch(d.program, d.args); err != nil {
			return err
		}
		if !d.Ended(endsWithin) {
			return errors.New("it starts without the address")
		}
		return nil
	}
	onTUN := func() error { return d.Do(func() error { return addOnTUN(vip32) }) }
	if err := s.tryWay(client, d, onTUN, r.tun); err != nil {
		return fmt.Errorf("on topdog0: %w", err)
	}
	onInterface := func() error { return d.AddAddress(vip32) }
	if err := s.tryWay(client, d, onInterface, r.eth0); err != nil {
		return fmt.Errorf("on eth0: %w", err)
	}
	return nil
}

// tryWay starts the service, lets the address come, asks, and lets both go again. The service starts anew for each way:
// with bind-dynamic, dnsmasq cannot listen again where a process of it has a connection from before.
func (s *service) tryWay(client *netns.Host, d *daemon, come func() error, want string) error {
	if err := d.Launch(d.program, d.args); err != nil {
		return err
	}
	s.settle(client, d)
	if err := come(); err != nil {
		return err
	}
	if err := s.answers(client, want); err != nil {
		return err
	}
	if !d.Running() {
		return errors.New("it does not run without the address")
	}
	if err := d.end(syscall.SIGKILL); err != nil {
		return err
	}
	return d.DeleteAddress(vip32)
}

// settle waits until the service answers at the board's own address, or has had the time to.
func (s *service) settle(client *netns.Host, d *daemon) {
	for began := time.Now(); time.Since(began) < silentFor; time.Sleep(pause) {
		if client.Do(func() error { return s.ask(d.Addr.Addr()) }) == nil {
			return
		}
	}
}

// addOnTUN gives a new TUN device the address.
func addOnTUN(vip netip.Prefix) error { return addOn(netio.DefaultDevice, vip) }

// addOn gives a device the address as the leader does: one of IPv6 is deprecated. It makes a TUN device if there is none of that
// name.
func addOn(device string, vip netip.Prefix) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		link = &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: device}, Mode: netlink.TUNTAP_MODE_TUN}
		if err := netlink.LinkAdd(link); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	addr, err := netlink.ParseAddr(vip.String())
	if err != nil {
		return err
	}
	if vip.Addr().Is6() {
		addr.ValidLft, addr.PreferedLft = 3600, 0
	}
	return netlink.AddrAdd(link, addr)
}

// answers says what is wrong with how the client is answered at the address: "yes", "no", or one transport "only".
func (s *service) answers(client *netns.Host, want string) error {
	ask := func(q question) error { return client.Do(func() error { return q(cluster.Address) }) }
	transport, only := strings.CutSuffix(want, " only")
	for name, q := range s.asks {
		if want == "yes" || only && name == transport {
			if err := eventually(func() error { return ask(q) }); err != nil {
				return fmt.Errorf("no answer by %s: %w", name, err)
			}
			continue
		}
		for began := time.Now(); time.Since(began) < silentFor; {
			if ask(q) == nil {
				return fmt.Errorf("there is an answer by %s", name)
			}
		}
	}
	return nil
}

// eventually tries until it works or the time is over.
func eventually(try func() error) (err error) {
	for began := time.Now(); time.Since(began) < answersWithin; time.Sleep(pause) {
		if err = try(); err == nil {
			return nil
		}
	}
	return err
}
