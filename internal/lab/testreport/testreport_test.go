package testreport

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	const input = `# topdog/wire: a line of the compiler
{"Action":"run","Package":"topdog/wire","Test":"TestA"}
{"Action":"output","Package":"topdog/wire","Test":"TestA","Output":"nobody wants to see this\n"}
{"Action":"pass","Package":"topdog/wire","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"topdog/wire","Test":"TestB","Output":"b_test.go:7: wrong\n"}
{"Action":"fail","Package":"topdog/wire","Test":"TestB","Elapsed":0.2}
{"Action":"output","Package":"topdog/netio","Test":"TestC","Output":"c_test.go:7: needs root\n"}
{"Action":"skip","Package":"topdog/netio","Test":"TestC","Elapsed":0}
{"Action":"skip","Package":"topdog/cmd/none","Elapsed":0}
{"Action":"fail","Package":"topdog/wire","Elapsed":1.5}
{"Action":"pass","Package":"topdog/netio","Elapsed":2}
`
	const want = `# topdog/wire: a line of the compiler
fail      0.2 s  topdog/wire TestB
    b_test.go:7: wrong
skip      0.0 s  topdog/netio TestC
    c_test.go:7: needs root
fail      1.5 s  topdog/wire
ok        2.0 s  topdog/netio
`
	var out strings.Builder
	got, err := read(strings.NewReader(input), &out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("wrong report (-want +got):\n%s", diff)
	}
	if want := (counts{passed: 1, failed: 2, skipped: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
