package recipes

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

// service is a program that a recipe is about, as Debian installs it.
type service struct {
	page    string // in docs/recipes
	unit    string // its unit of systemd
	program string
	args    []string // that keep it in the foreground; {root} is the board's directory
	// main is the path of the configuration of the package. Here it keeps the service in the board's directory. What
	// follows that includes the files of the recipe, as Debian's does, or is for the settings of a row of the recipe's table.
	main, base, include, table string
	// prepare does what else the recipe tells people to do.
	prepare func(t testing.TB, root string)
	asks    map[string]question                    // by transport
	ipv6    string                                 // what the recipes say must be added for IPv6, in the block of the line before
	before  string                                 // that line of the recipe
	beside  func(t testing.TB, c *cluster.Cluster) // runs what the service needs on the LAN
}

var services = []service{
	{
		page: "dnsmasq.md", unit: "dnsmasq.service", program: "/usr/sbin/dnsmasq",
		args:    []string{"--keep-in-foreground", "--conf-file={root}/etc/dnsmasq.conf"},
		main:    "/etc/dnsmasq.conf",
		base:    "user=root\npid-file=\nlog-facility=-\nno-resolv\nno-hosts\n",
		include: "local-service\nconf-dir={root}/etc/dnsmasq.d/,*.conf\n", // as Debian starts it
		table:   "host-record=dns.home.arpa,192.168.1.250\n{settings}\n",
		asks:    map[string]question{"UDP": dnsByUDP, "TCP": dnsByTCP},
	},
	{
		page: "unbound.md", unit: "unbound.service", program: "/usr/sbin/unbound",
		args: []string{"-d", "-p", "-c", "{root}/etc/unbound/unbound.conf"},
		main: "/etc/unbound/unbound.conf",
		base: "server:\n  username: \"\"\n  chroot: \"\"\n  directory: \"{root}\"\n  use-syslog: no\n  logfile: \"\"\n" +
			"remote-control:\n  control-enable: no\n",
		include: "include-toplevel: \"{root}/etc/unbound/unbound.conf.d/*.conf\"\n",
		table:   "server:\n  access-control: 192.168.1.0/24 allow\n  local-data: \"dns.home.arpa. A 192.168.1.250\"\n{settings}\n",
		asks:    map[string]question{"UDP": dnsByUDP, "TCP": dnsByTCP},
	},
	{
		page: "haproxy.md", unit: "haproxy.service", program: "/usr/sbin/haproxy",
		args:  []string{"-W", "-db", "-f", "{root}/etc/haproxy/haproxy.cfg"},
		main:  "/etc/haproxy/haproxy.cfg", // the recipe adds to it
		base:  "global\n  stats socket {root}/admin.sock\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 50s\n  timeout server 50s\n",
		table: "frontend web\n{settings}\nhttp-request return status 200 content-type text/plain string \"" + behindProxy + "\"\n",
		asks:  map[string]question{"TCP": askHTTP(behindProxy)}, beside: runWebServers,
		before: "bind *:80", ipv6: "bind :::80 v6only",
	},
	{
		page: "nginx.md", unit: "nginx.service", program: "/usr/sbin/nginx",
		args:    []string{"-c", "{root}/etc/nginx/nginx.conf"},
		main:    "/etc/nginx/nginx.conf",
		base:    "daemon off;\nuser root;\nworker_processes 2;\npid {root}/nginx.pid;\nerror_log stderr;\nevents {}\n",
		include: "http { access_log off; include {root}/etc/nginx/sites-enabled/*; }\n",
		table:   "http { access_log off; server { {settings} return 200 \"" + homePage + "\"; } }\n",
		prepare: func(t testing.TB, root string) {
			write(t, root+"/var/www/html/index.html", homePage)
			assert.NoError(t, os.MkdirAll(root+"/etc/nginx/sites-enabled", 0o755))
			assert.NoError(t, os.Symlink("../sites-available/home", root+"/etc/nginx/sites-enabled/home"))
		},
		asks:   map[string]question{"TCP": askHTTP(homePage)},
		before: "listen 80;", ipv6: "listen [::]:80;",
	},
	{
		page: "mosquitto.md", unit: "mosquitto.service", program: "/usr/sbin/mosquitto",
		args:    []string{"-c", "{root}/etc/mosquitto/mosquitto.conf"},
		main:    "/etc/mosquitto/mosquitto.conf",
		base:    "user root\npersistence false\n",
		include: "include_dir {root}/etc/mosquitto/conf.d\n",
		table:   "allow_anonymous true\n{settings}\n",
		prepare: func(t testing.TB, root string) {
			run(t, "mosquitto_passwd", "-b", "-c", root+"/etc/mosquitto/passwd", mqttUser, mqttPassword)
		},
		asks: map[string]question{"TCP": askMQTT},
	},
	{
		page: "chrony.md", unit: "chrony.service", program: "/usr/sbin/chronyd",
		// -x: this test does not set the clock of the machine.
		args:    []string{"-x", "-d", "-U", "-u", "root", "-f", "{root}/etc/chrony/chrony.conf"},
		main:    "/etc/chrony/chrony.conf",
		base:    "server 10.77.0.200 iburst minpoll -4 maxpoll -4\npidfile {root}/chrony.pid\nbindcmdaddress /\n",
		include: "confdir {root}/etc/chrony/conf.d\n",
		table:   "{settings}\n",
		asks:    map[string]question{"UDP": askNTP}, beside: runTimeServer,
		before: "allow 192.168.1.0/24", ipv6: "allow fd00::/8",
	},
}

// ask asks the service by all its transports: one that answers by one of them only is a mistake that people notice late.
func (s *service) ask(addr netip.Addr) error {
	for transport, ask := range s.asks {
		if err := ask(addr); err != nil {
			return fmt.Errorf("by %s: %w", transport, err)
		}
	}
	return nil
}

// installed skips the test where the service is not.
func (s *service) installed(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(s.program); err != nil {
		t.Skip(err)
	}
}

// daemon is a service on a board.
type daemon struct {
	*cluster.Daemon
	program string
	args    []string
}

// install writes the files of the service for one board. It copies the program and gives it a name of its own: all boards
// here have one list of processes, in which an exec check looks for the name if it may not see the path.
func (s *service) install(t testing.TB, c *cluster.Cluster, board int) *daemon {
	t.Helper()
	d, err := c.NewDaemon(board)
	assert.NoError(t, err)
	assert.NoError(t, os.Chmod(d.Dir, 0o755))
	program := d.Dir + s.program + strconv.Itoa(board)
	copyFile(t, s.program, program)
	texts := files(t, s.page)
	delete(texts, topdogTOML) // see configuration
	for path, text := range texts {
		texts[path] = here(text, d.Dir)
	}
	texts[s.main] = strings.ReplaceAll(s.base+s.include, "{root}", d.Dir) + texts[s.main]
	for path, text := range texts {
		write(t, d.Dir+path, text)
	}
	if s.prepare != nil {
		s.prepare(t, d.Dir)
	}
	return &daemon{d, program, s.arguments(d.Dir)}
}

func (s *service) arguments(root string) []string {
	return strings.Split(strings.ReplaceAll(strings.Join(s.args, "\n"), "{root}", root), "\n")
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	assert.NoError(t, err)
	write(t, to, string(text))
	assert.NoError(t, os.Chmod(to, 0o755))
}

// here puts a file of a recipe into this test's LAN, and into the directory of a board.
func here(text, root string) string {
	text = strings.ReplaceAll(text, floating, cluster.Address.String())
	text = strings.ReplaceAll(text, boardPrefix, strings.TrimSuffix(netns.Subnet.Addr().String(), "0"))
	return strings.NewReplacer("/etc/", root+"/etc/", "/var/www/", root+"/var/www/").Replace(text)
}

// configuration is the recipe's topdog.toml for a board. Here is no systemd to ask about a unit: the test
// asks about the process instead.
func (s *service) configuration(t testing.TB, d *daemon) string {
	t.Helper()
	text := files(t, s.page)[topdogTOML]
	unit, process := fmt.Sprintf("unit = %q", s.unit), fmt.Sprintf("exec = %q", d.program)
	if strings.Count(text, unit) != 1 {
		t.Fatalf("%s: %s has no line %s", s.page, topdogTOML, unit)
	}
	return here(strings.Replace(text, unit, process, 1), d.Dir)
}

// start starts the service.
func (d *daemon) start(t testing.TB) {
	t.Helper()
	d.Log.Note("start %s", d.program)
	assert.NoError(t, d.Launch(d.program, d.args))
}

// end sends the service a signal, and waits until it has ended with all its processes, as systemd does before it starts
// a unit again. A process of dnsmasq that answers by TCP has the listening socket too, and may end a moment after
// the first one.
func (d *daemon) end(sig syscall.Signal) error {
	if err := syscall.Kill(-d.PID(), sig); err != nil {
		return fmt.Errorf("end %s: %w", d.program, err)
	}
	return cluster.Until("end "+d.program, func() string {
		switch left, err := inGroup(d.PID()); {
		case err != nil:
			return err.Error()
		case len(left) > 0:
			return fmt.Sprintf("processes %v still run", left)
		case d.Running():
			return "nobody has waited for its first process"
		}
		return ""
	})
}

// inGroup returns the processes of a group that have not ended (proc_pid_stat(5)).
func inGroup(group int) (found []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		var pid, parent, of int
		var state string
		// The name is in parentheses and may contain anything.
		before, after := text[:bytes.IndexByte(text, ' ')], text[bytes.LastIndexByte(text, ')')+1:]
		if _, err := fmt.Sscan(string(before)+" "+string(after), &pid, &state, &parent, &of); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", f, err, text)
		}
		if of == group && state != "Z" && state != "X" {
			found = append(found, pid)
		}
	}
	return found, nil
}

func write(t testing.TB, path, text string) {
	t.Helper()
	assert.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	assert.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
