package check

import (
	"bytes"
	"encoding/json"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAttendOnce: each check is tried once, those for the leader too, in a checker of its own.
func TestAttendOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	order, err := json.Marshal(Order{Checks: []Check{
		quick(l.Addr().String(), Always), quick(closed.Addr().String(), Leading), quick(l.Addr().String(), Leading),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(beChecker, "1")
	var out bytes.Buffer
	if err := AttendOnce(bytes.NewReader(order), &out, []string{"/proc/self/exe"}); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	if err := json.Unmarshal(out.Bytes(), &reasons); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "connection refused", ""}, reasons); diff != "" {
		t.Errorf("the reasons (-want +got):\n%s", diff)
	}
	if err := AttendOnce(bytes.NewReader([]byte("{")), &out, nil); err == nil {
		t.Error("half an order is taken")
	}
}
