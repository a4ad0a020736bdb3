package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

const (
	boards = 3
	// webPort is that of the service on the boards, and of the proxy in front of it.
	webPort = 80
	// prometheusPort is where Prometheus listens, on the machine of the client.
	prometheusPort = 9090
	// quiet is how long nothing may fire while all is well. The rules wait for shortFor here.
	quiet    = 3 * time.Second
	shortFor = "1s"
	// heartbeat lets a leader be late by 100 ms: this is about Prometheus, and machines stand still at times.
	heartbeat = "1s"
)

// topdog is the program that the boards run.
var topdog cluster.Program

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "topdog")
	if err != nil {
		panic(err)
	}
	topdog.Path = filepath.Join(dir, "topdog")
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// rig is a LAN of boards with their pages, and Prometheus on the client's machine.
type rig struct {
	*cluster.Cluster
	t      testing.TB
	dir    string   // for the files of Prometheus
	log    *os.File // what Prometheus and HAProxy say
	boards []*watched
	began  time.Time
	web    http.Client // on the client's machine
}

// watched is a board with its page. What it serves works while a file is there.
type watched struct {
	*cluster.Topdog
	page  *cluster.Daemon
	works string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	assert.NoError(t, cluster.Build(t.Context(), topdog.Path))
	c, err := cluster.New(boards)
	assert.NoError(t, err)
	r := &rig{Cluster: c, t: t, dir: t.TempDir(), began: time.Now()}
	r.log, err = os.Create(filepath.Join(r.dir, "log"))
	assert.NoError(t, err)
	r.web = http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return netns.Within(c.LAN.Client(), func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, address) })
		},
	}}
	t.Cleanup(r.close)
	key := config.NewKey()
	for n := 1; n <= boards; n++ {
		r.add(n, key)
	}
	return r
}

// add runs a board and its page.
func (r *rig) add(n int, key config.Key) {
	r.t.Helper()
	page, err := r.NewDaemon(n)
	assert.NoError(r.t, err)
	assert.NoError(r.t, os.Chmod(page.Dir, 0o755)) // the check is somebody else
	works := filepath.Join(page.Dir, "works")
	assert.NoError(r.t, os.WriteFile(works, nil, 0o644))
	b, err := r.NewTopdog(topdog, n, cluster.Settings{
		"heartbeat": cluster.Quote(heartbeat),
		"check":     fmt.Sprintf(`[{ command = ["/usr/bin/test", "-e", %q], title = "works", every = "200ms", rise = 1, fall = 1 }]`, works),
	})
	assert.NoError(r.t, err)
	assert.NoError(r.t, b.SetKey(key))
	assert.NoError(r.t, b.Run())
	assert.NoError(r.t, page.Launch(topdog.Path, []string{"page", "--config", b.ConfigFile()}))
	r.boards = append(r.boards, &watched{b, page, works})
}

func (r *rig) close() {
	r.Stop(cluster.Timeout)
	assert.ErrorIs(r.t, r.Close(), nil, "")
	if !r.t.Failed() {
		return
	}
	r.t.Logf("Prometheus and HAProxy:\n%s", read(r.t, r.log.Name()))
	for _, b := range r.boards {
		r.t.Logf("%s:\n%s\nits page:\n%s", b, b.Log, b.page.Log)
	}
}

// agree waits until these boards agree on a leader.
func (r *rig) agree(members ...*watched) *watched {
	r.t.Helper()
	var all []*cluster.Topdog
	for _, b := range members {
		all = append(all, b.Topdog)
	}
	leader, err := r.AwaitAgreed(all)
	assert.NoError(r.t, err)
	return r.boards[leader.Number-1]
}

// except returns all boards but these.
func (r *rig) except(these ...*watched) []*watched {
	return slices.DeleteFunc(slices.Clone(r.boards), func(b *watched) bool { return slices.Contains(these, b) })
}

// block is the file of that path that the page tells people to write, with the addresses of this LAN.
func (r *rig) block(path string) string {
	r.t.Helper()
	_, text, found := strings.Cut(read(r.t, page), " "+path+"\n")
	text, _, ends := strings.Cut(text, "```")
	if !found || !ends {
		r.t.Fatalf("%s does not show %s", page, path)
	}
	return strings.ReplaceAll(text, "192.168.1.1", "10.77.0.")
}

// observe runs Prometheus as the page says, in a hurry.
func (r *rig) observe(prometheus string) {
	r.t.Helper()
	hurried := regexp.MustCompile(`(?m)^( *for): .*$`).ReplaceAllString(read(r.t, rules), "$1: "+shortFor)
	hurried = strings.Replace(hurried, "interval: 15s", "interval: 250ms", 1)
	file := filepath.Join(r.dir, "rules.yml")
	assert.NoError(r.t, os.WriteFile(file, []byte(hurried), 0o644))
	text := strings.Replace(r.block("/etc/prometheus/prometheus.yml"), "scrape_interval: 15s", "scrape_interval: 1s", 1)
	text = strings.Replace(text, "/etc/prometheus/topdog.rules.yml", file, 1)
	assert.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "prometheus.yml"), []byte(text), 0o644))
	host := r.LAN.Client()
	_, err := host.Start(r.t.Context(), prometheus, []string{
		"--config.file=" + filepath.Join(r.dir, "prometheus.yml"), "--storage.tsdb.path=" + filepath.Join(r.dir, "data"),
		fmt.Sprintf("--web.listen-address=%s:%d", host.Addr.Addr(), prometheusPort), "--log.level=warn",
	}, netns.Stdout(r.log), netns.Stderr(r.log))
	assert.NoError(r.t, err)
}

// asked waits until Prometheus has asked all boards. It takes 5 s to find out whom to ask.
func (r *rig) asked() {
	r.t.Helper()
	r.until("Prometheus has asked all boards", func() string {
		return cmp.Diff(fmt.Sprint(boards), r.value(`sum(topdog_up)`))
	})
}

// get asks from the client's machine.
func (r *rig) get(host netip.Addr, port int, path string) (code int, body []byte, err error) {
	answer, err := r.web.Get(fmt.Sprintf("http://%s:%d%s", host, port, path))
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// ask asks Prometheus, and fills in what its answer has as data.
func (r *rig) ask(path string, data any) error {
	code, body, err := r.get(r.LAN.Client().Addr.Addr(), prometheusPort, path)
	if err != nil {
		return err
	}
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal(body, &answer); err != nil || code != http.StatusOK {
		return fmt.Errorf("status %d, %s, %v", code, answer.Error, err)
	}
	return nil
}

// series is one of those that an expression selects.
type series struct {
	Metric map[string]string
	Value  [2]any
}

// evaluate evaluates an expression.
func (r *rig) evaluate(expression string) ([]series, error) {
	var data struct{ Result []series }
	err := r.ask("/api/v1/query?query="+url.QueryEscape(expression), &data)
	return data.Result, err
}

// value is what an expression comes to, or why it does not.
func (r *rig) value(expression string) string {
	result, err := r.evaluate(expression)
	switch {
	case err != nil:
		return err.Error()
	case len(result) != 1:
		return fmt.Sprintf("%d values", len(result))
	}
	return fmt.Sprint(result[0].Value[1])
}

// until waits until nothing is missing.
func (r *rig) until(what string, missing func() string) {
	r.t.Helper()
	assert.NoError(r.t, cluster.Until(what, missing))
}
