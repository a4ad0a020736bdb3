package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"topdog/internal/lab/assert"
)

// want runs a check once, and wants it to fail for this reason, or not to fail.
func want(t *testing.T, name string, c Check, reason string, floating ...netip.Addr) {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	shared := &tools{floating: floating}
	p, err := shared.prober(&c)
	assert.NoError(t, err)
	defer p.close()
	assert.ErrorContains(t, probe(t.Context(), &c, p), reason, "%s", name)
}

// closedPort is one on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	loopback := netip.MustParseAddr("127.0.0.1")
	tcp := func(target string) Check { return Check{Kind: TCP, Target: target} }
	want(t, "open", tcp("127.0.0.1:"+port), "")
	want(t, "a name", tcp("localhost:"+port), "")
	want(t, "closed", tcp(closedPort(t)), "connection refused")
	want(t, "no such name", Check{Kind: TCP, Target: "nothing.invalid:1"}, "the name nothing.invalid has no address")
	want(t, "a name that is the floating address", tcp("localhost:"+port), `localhost is the floating address 127.0.0.1, so this check asks the leader from all boards`, loopback)
	leading := tcp("localhost:" + port)
	leading.When = Leading
	want(t, "the same on the leader", leading, "", loopback)
}

// A check that is aimed at a floating address is told where it belongs, by the same family.
func TestMisaimedText(t *testing.T) {
	for addr, itself := range map[string]string{"10.0.0.100": "127.0.0.1", "fd00:1::250": "[::1]"} {
		err := &misaimedError{"pi.hole", netip.MustParseAddr(addr)}
		assert.ErrorContains(t, err, "pi.hole is the floating address "+addr+", so this check asks the leader from all boards: aim it at "+itself+",", "%s", addr)
	}
}

func TestMisaimedIsReported(t *testing.T) {
	c := Check{Kind: TCP, Target: "localhost:1", Every: time.Hour, Timeout: time.Second, Rise: 1, Fall: 1}
	p, err := (&tools{floating: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}).prober(&c)
	assert.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	(&worker{check: c, prober: p, report: func(r Report) {
		end()
		if r.Passing || !r.Misaimed {
			t.Errorf("report %+v", r)
		}
	}}).run(ctx)
}

func TestHTTP(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		case "/host":
			fmt.Fprint(w, "you asked "+r.Host)
		case "/sni":
			fmt.Fprint(w, "you named "+r.TLS.ServerName)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/endless":
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
					return
				}
			}
		case "/hangs":
			<-r.Context().Done()
		default:
			fmt.Fprint(w, "all is well")
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	secure.Config.ErrorLog = nil
	defer plain.Close()
	defer secure.Close()
	get := func(target string) Check { return Check{Kind: HTTP, Target: target} }
	with := func(c Check, change func(*Check)) Check { change(&c); return c }
	want(t, "200", get(plain.URL), "")
	want(t, "a certificate that nobody knows", get(secure.URL), "")
	want(t, "500", get(plain.URL+"/broken"), "it answered with status 500")
	want(t, "a status that is wanted", with(get(plain.URL+"/broken"), func(c *Check) { c.Status = []int{500} }), "")
	want(t, "one that is not", with(get(plain.URL), func(c *Check) { c.Status = []int{204, 301} }), "it answered with status 200")
	want(t, "a redirection, which is not followed", get(plain.URL+"/moved"), "")
	want(t, "contains", with(get(plain.URL), func(c *Check) { c.Contains = "is well" }), "")
	want(t, "does not contain", with(get(plain.URL), func(c *Check) { c.Contains = "broken" }), `the first 11 bytes of its answer do not contain "broken"`)
	want(t, "without end", with(get(plain.URL+"/endless"), func(c *Check) { c.Contains = "y" }), `the first 65536 bytes of its answer do not contain "y"`)
	want(t, "the host", with(get(plain.URL+"/host"), func(c *Check) { c.Host, c.Contains = "www.example.org:81", "you asked www.example.org:81" }), "")
	want(t, "its name in TLS", with(get(secure.URL+"/sni"), func(c *Check) { c.Host, c.Contains = "www.example.org:81", "you named www.example.org" }), "")
	want(t, "hangs", with(get(plain.URL+"/hangs"), func(c *Check) { c.Timeout = 50 * time.Millisecond }), "no answer within 50ms")
	want(t, "nobody", get("http://"+closedPort(t)+"/"), "connection refused")
	want(t, "the wrong protocol", get("https"+strings.TrimPrefix(plain.URL, "http")), "HTTP response to HTTPS client")
}

// nameServer answers as told, and returns its address.
func nameServer(t *testing.T, answer func(q dnsmessage.Message) []dnsmessage.Message) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	assert.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var q dnsmessage.Message
			assert.ErrorIs(t, q.Unpack(buffer[:n]), nil, "the question")
			for _, a := range answer(q) {
				packed, err := a.Pack()
				assert.ErrorIs(t, err, nil, "an answer")
				_, err = conn.WriteTo(packed, from)
				assert.ErrorIs(t, err, nil, "sending it")
			}
		}
	}()
	return conn.LocalAddr().String()
}

func TestDNS(t *testing.T) {
	server := nameServer(t, func(q dnsmessage.Message) []dnsmessage.Message {
		a := dnsmessage.Message{Header: q.Header, Questions: q.Questions}
		a.Response = true
		record := dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Class: dnsmessage.ClassINET, Type: dnsmessage.TypeA},
			Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
		}
		switch name := q.Questions[0].Name.String(); name {
		case "pi.hole.":
			a.Answers = append(a.Answers, record)
		case "nothing.lan.":
		case "unknown.lan.":
			a.RCode = dnsmessage.RCodeNameError
		case "refused.lan.":
			a.RCode = dnsmessage.RCodeRefused
		case "late.lan.": // first the answer to an earlier question, which is no answer to this one
			other := a
			other.ID++
			other.RCode = dnsmessage.RCodeServerFailure
			a.Answers = append(a.Answers, record)
			return []dnsmessage.Message{other, q, a}
		case "long.lan.":
			a.Truncated = true
		case "silent.lan.":
			return nil
		default:
			t.Errorf("asked for %s", name)
		}
		return []dnsmessage.Message{a}
	})
	dns := func(name string) Check { return Check{Kind: DNS, Target: JoinDNS(name, server), Timeout: time.Second} }
	want(t, "an answer", dns("pi.hole"), "")
	want(t, "a whole name", dns("pi.hole."), "")
	want(t, "no record", dns("nothing.lan"), "its answer has no record")
	want(t, "no such name", dns("unknown.lan"), "it answered with NameError")
	want(t, "refused", dns("refused.lan"), "it answered with Refused")
	want(t, "behind other datagrams", dns("late.lan"), "")
	want(t, "more than fits", dns("long.lan"), "")
	silent := dns("silent.lan")
	silent.Timeout = 50 * time.Millisecond
	want(t, "silence", silent, "no answer within 50ms")
	_, port, _ := net.SplitHostPort(server)
	want(t, "a server by name", Check{Kind: DNS, Target: JoinDNS("pi.hole", "localhost:"+port), Timeout: time.Second}, "")
	want(t, "nobody", Check{Kind: DNS, Target: JoinDNS("pi.hole", closedPort(t)), Timeout: time.Second}, "connection refused")
}

// FuzzDNSAnswer: whatever arrives, a name server is judged, and nothing panics.
func FuzzDNSAnswer(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 0x80, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := dnsProber{}
		if err := p.judge(b, 1); err == nil && len(b) < 12 {
			t.Errorf("% x is a good answer", b)
		}
	})
}

func TestCommand(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("needs a shell: %v", err)
	}
	run := func(text string) Check { return Check{Kind: Command, Target: shell, Arguments: []string{"-c", text}} }
	want(t, "well", run("exit 0"), "")
	want(t, "talkative", run("i=0; while [ $i -lt 300 ]; do echo 1234567890; i=$((i+1)); done"), "")
	want(t, "not well", run("echo no disk >&2; exit 1"), `failed (exit status 1): "no disk"`)
	slow := run("sleep 1000")
	slow.Timeout = 50 * time.Millisecond
	want(t, "hangs", slow, "no answer within 50ms")
	want(t, "is not there", Check{Kind: Command, Target: "/nowhere"}, "cannot be started: no such file or directory")
}

// copyOf copies a program, so that no other process runs the same file.
func copyOf(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("needs %s: %v", program, err)
	}
	data, err := os.ReadFile(path)
	assert.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "a-copy-of-"+program)
	assert.WriteFile(t, copied, data, 0o755)
	return copied
}

// sleeps starts a copy of sleep, or a link to one, which runs as long as the test.
func sleeps(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	c := exec.Command(path, "1000")
	assert.NoError(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

// changed waits until a check is told of a change.
func changed(t *testing.T, p prober, what string) {
	t.Helper()
	select {
	case <-p.changes():
	case <-time.After(10 * time.Second):
		t.Fatalf("nobody is told that %s", what)
	}
}

func TestExec(t *testing.T) {
	path := copyOf(t, "sleep")
	c := Check{Kind: Exec, Target: path}
	p := newExecProber(&c)
	defer p.close()
	fails := func(step, part string) {
		t.Helper()
		assert.ErrorContains(t, p.probe(t.Context()), part, "%s", step)
	}
	fails("nobody runs it", "there is no such process")
	first, second := sleeps(t, path), sleeps(t, path)
	fails("two run it", "")
	assert.Is(t, min(first.Process.Pid, second.Process.Pid), p.held.pid, "the process that is watched")
	if p.held.pid == second.Process.Pid { // the numbers have begun anew
		first, second = second, first
	}
	first.Process.Kill()
	changed(t, p, "the first has ended")
	fails("one is left", "")
	second.Process.Kill()
	changed(t, p, "the second has ended")
	fails("none is left", fmt.Sprintf("its process %d has ended", second.Process.Pid))
	fails("none is left, and the dead are not buried", "there is no such process")

	c.User = "root"
	if os.Getuid() == 0 {
		c.User = "nobody"
	}
	sleeps(t, path)
	fails("back", "")
	want(t, "of another user", c, "there is no such process")
	c.User = fmt.Sprint(os.Getuid())
	want(t, "of this user", c, "")
	c.User = "no-such-user"
	want(t, "of nobody", c, "there is no user no-such-user")
}

// TestExecKnowsAScript: what runs then is its interpreter.
func TestExecKnowsAScript(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("needs a shell: %v", err)
	}
	path := filepath.Join(t.TempDir(), "service")
	assert.WriteFile(t, path, []byte("#!"+shell+"\necho\nread line\n"), 0o755)
	c := exec.Command(path)
	in, err := c.StdinPipe()
	assert.NoError(t, err)
	out, err := c.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, c.Start())
	defer func() { in.Close(); c.Wait() }()
	_, err = out.Read(make([]byte, 1))
	assert.NoError(t, err)
	want(t, "a script", Check{Kind: Exec, Target: path}, "")
}

func TestHiddenProcessesHaveAHint(t *testing.T) {
	if _, err := os.Stat("/proc/1"); err != nil {
		t.Skipf("cannot see the first process: %v", err)
	}
	if err := notFound(); errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "ProtectProc") {
		t.Errorf("nothing is hidden here, and the reason is: %v", err)
	}
}

// listenUnix listens on a socket, and never answers. It returns the path.
func listenUnix(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	assert.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return path
}
