package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// keepalivedOf is the configuration of a pair as people have it.
func keepalivedOf(b *board) string {
	return fmt.Sprintf(`global_defs {
    router_id %s
    script_user root
    enable_script_security
}
vrrp_instance VI_1 {
    state BACKUP
    interface %s
    virtual_router_id 51
    priority %d
    advert_int 1
    authentication {
        auth_type PASS
        auth_pass 1234
    }
    virtual_ipaddress {
        %v dev %[2]s label %[2]s:vip
    }
}
`, b, b.Interface, 200-50*b.Number, vip24)
}

// keepalivedPath is where keepalived is; sbin is not in everybody's PATH.
const keepalivedPath = "/usr/sbin/keepalived"

// startKeepalived runs keepalived on a board.
func (b *board) startKeepalived() *netns.Process {
	b.c.t.Helper()
	in := func(name string) string { return filepath.Join(b.Dir, name) }
	must(b.c.t, os.WriteFile(in("keepalived.conf"), []byte(keepalivedOf(b)), 0o600))
	p, err := b.Host.Start(b.c.t.Context(), keepalivedPath, []string{"--use-file", in("keepalived.conf"), "--vrrp", "--dont-fork", "--log-console", "--no-syslog",
		"--pid", in("k.pid"), "--vrrp_pid", in("v.pid"), "--checkers_pid", in("c.pid"), "--bfd_pid", in("b.pid")})
	must(b.c.t, err)
	return p
}

// convert makes the configurations of the boards of that of keepalived on the first, as docs/keepalived.md says.
func (c *testCluster) convert() {
	c.t.Helper()
	for _, b := range c.boards {
		must(c.t, os.Remove(b.ConfigFile()))
		must(c.t, os.Remove(b.KeyFile()))
	}
	first := c.board(1)
	if o := first.topdog("init", "--led", "none", "--from", filepath.Join(first.Dir, "keepalived.conf")); o.status != 0 {
		c.t.Fatal(o)
	}
	for _, b := range c.boards {
		priority := "priority = 150"
		if b != first {
			pipe := exec.Command("sh", "-ec", `"$0" init --export --config "$1" | "$0" init --import --config "$2"`, executable(c.t), first.ConfigFile(), b.ConfigFile())
			pipe.Env = append(pipe.Environ(), itself().Env...)
			if out, err := pipe.CombinedOutput(); err != nil {
				c.t.Fatalf("%v\n%s", err, out)
			}
			priority = "priority = 100"
		}
		text, err := os.ReadFile(b.ConfigFile())
		must(c.t, err)
		defer b.writeConfig(fmt.Sprintf("%sheartbeat = %q\nsocket = %q\nname = %q\n", // after the export: these are the test's
			strings.ReplaceAll(string(text), "priority = 150", priority), heartbeat, filepath.Join(b.Dir, "s"), b))
	}
}

// A pair with keepalived becomes one with topdog, and the client notices nothing, if topdog is started
// first where the address is, and keepalived is stopped last there.
func TestChangeOverFromKeepalived(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		if _, err := os.Stat(keepalivedPath); err != nil {
			t.Skipf("needs keepalived: %v", err)
		}
		c := newCluster(t, 2, nil)
		holder, other := c.board(1), c.board(2)
		old, oldOther := holder.startKeepalived(), other.startKeepalived()
		c.answeredBy(holder)
		c.convert()

		began := time.Now()
		holder.start()
		holder.untilStatusIs("it holds the address beside keepalived", func(s console.Status) bool { return s.Holding })
		other.start()
		c.agreeOn(holder, holder, other)
		for _, p := range []*netns.Process{oldOther, old} {
			must(t, p.Signal(syscall.SIGTERM))
			must(t, p.Wait())
		}
		c.watchFor(10 * heartbeat)
		c.undisturbed(began, holder)
		c.agreeOn(holder, holder, other)
		if s, err := other.Status(); err != nil || s.Group != "vrrp-51" || s.Board.Priority != 100 {
			t.Errorf("the other board has group %s, priority %d: %v", s.Group, s.Board.Priority, err)
		}
	})
}
