# Reads the output of `go test -json`; see scripts/testreport. With --arg again yes, a test that was inconclusive twice is
# named as arguments of go test, behind "again: ", and is no failure.

# inconclusive is a line of package internal/lab/judge, with its place: an attempt says nothing, since the machine was late.
def inconclusive($how): test("^ +\\S+\\.go:\\d+: inconclusive" + $how + ": ");

def name: "\(.Package) \(.Test)";

def arguments:
  (.Test | split("/") | map("^" + gsub("(?<c>[\\\\.+*?()|\\[\\]{}^$])"; "\\\(.c)") + "$") | join("/")) as $pattern
  | "\(.Package) -run \($pattern)";

reduce (inputs | select(.Test)) as $e ({passed: 0, failed: 0, attempts: 0, alone: {}, skipped: []};
  if $e.Action == "pass" then .passed += 1
  elif $e.Action == "fail" then .failed += 1
  elif $e.Action == "skip" then .skipped += [$e]
  elif $e.Action != "output" then .
  elif $e.Output | inconclusive(" also alone") then .attempts += 1 | .alone[$e | name] = true
  elif $e.Output | inconclusive("") then .attempts += 1
  else . end)
| . as $r
| (.skipped | map(select($r.alone[name] and $again == "yes"))) as $later
| ($later[] | "again: " + arguments),
  "\(.passed) passed, \(.failed) failed, \(.skipped | length) skipped; "
    + "\(.attempts) attempts inconclusive, \(.alone | length) of them also alone",
  if .passed == 0 then "no test has passed\n" | halt_error(1)
  elif (.skipped - $later) != [] then "a test that is skipped is a missing check\n" | halt_error(1)
  elif .failed > 0 then "" | halt_error(1)
  else empty end
