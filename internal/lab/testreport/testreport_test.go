package testreport

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
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
	r := &report{to: &out}
	assert.NoError(t, r.read(strings.NewReader(input)))
	assert.Equal(t, want, out.String(), "wrong report")
	if r.passed != 1 || r.failed != 2 || r.skipped != 1 || r.inconclusive != 0 {
		t.Errorf("counted %+v", r)
	}
}

// The summary is of all runs. It names tests and not what is around them, and counts attempts that say nothing.
func TestSummary(t *testing.T) {
	var out strings.Builder
	r := &report{to: &out}
	for _, input := range []string{
		`{"Action":"output","Package":"topdog/netio","Test":"TestA/one","Output":"    judge.go:78: ` + judge.Inconclusive + `: a processor was busy. What failed:\n"}
{"Action":"output","Package":"topdog/netio","Test":"TestA/one","Output":"it says inconclusive: no\n"}
{"Action":"pass","Package":"topdog/netio","Test":"TestA/one","Elapsed":3}
{"Action":"pass","Package":"topdog/netio","Test":"TestA","Elapsed":4}
{"Action":"pass","Package":"topdog/wire","Test":"TestA","Elapsed":1}
`,
		`{"Action":"pass","Package":"topdog/netio","Test":"TestA","Elapsed":2}
{"Action":"output","Package":"topdog/netio","Test":"TestB","Output":"    judge.go:78: ` + judge.Inconclusive + `: late\n"}
{"Action":"output","Package":"topdog/netio","Test":"TestB","Output":"    judge.go:82: ` + judge.Inconclusive + ` also alone: late\n"}
{"Action":"skip","Package":"topdog/netio","Test":"TestB","Elapsed":9}
{"Action":"output","Package":"topdog/netio","Test":"TestC/a+b","Output":"    judge.go:82: ` + judge.Inconclusive + ` also alone: late\n"}
{"Action":"skip","Package":"topdog/netio","Test":"TestC/a+b","Elapsed":9}
{"Action":"output","Package":"topdog/netio","Test":"TestD","Output":"    d_test.go:8: needs root\n"}
{"Action":"skip","Package":"topdog/netio","Test":"TestD","Elapsed":0}
`,
	} {
		assert.NoError(t, r.read(strings.NewReader(input)))
	}
	out.Reset()
	r.summary()
	const want = `slow      3.0 s  topdog/netio TestA/one
slow      2.0 s  topdog/netio TestA
slow      1.0 s  topdog/wire TestA
4 passed, 0 failed, 3 skipped; 4 attempts inconclusive, 2 of them also alone
`
	assert.Equal(t, want, out.String(), "wrong summary")

	again := filepath.Join(t.TempDir(), "again")
	assert.NoError(t, r.writeAgain(again))
	written, err := os.ReadFile(again)
	assert.NoError(t, err)
	assert.Equal(t, "topdog/netio -run ^TestB$\ntopdog/netio -run ^TestC$/^a\\+b$\n", string(written), "wrong tests to run again")
}
