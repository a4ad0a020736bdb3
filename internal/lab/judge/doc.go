// Package judge runs tests on the real kernel, whose clock the tests do not own.
//
// Boards that share a machine with a compiler may be late, and then their group is right to do what a
// test does not expect. So a test that fails is asked for evidence: [Run] has measured all the time how
// long its processes had to wait for a processor, and how long the kernel took for a change
// of an address. If nothing was late, the test has failed. Otherwise the attempt is inconclusive: it is
// counted, and the test runs once more, alone on the machine, when that has little else to do. If it fails
// at the same place again, it has failed: a machine that is late now and then disturbs now this and now that. At another place,
// or on a machine whose processors are busy nearly all the time, the second attempt is inconclusive as well, and the test is
// skipped, with the evidence. There is no other repetition, but that .ci/run has a test that was skipped so pass at its end, when
// nothing else runs.
package judge
