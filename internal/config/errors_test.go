package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"topdog/internal/lab/golden"
)

// testHost makes the default of name independent of the machine that the tests run on.
const testHost = "pi3.example.org"

const good = "address = \"192.168.1.250\"\n"

// manyChecks are so many different checks.
func manyChecks(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("[[check]]\ntcp = \"127.0.0.1:%d\"\n", i+1)
	}
	return text
}

// badFiles are files that Parse refuses. What it says about them is in
// testdata/errors.golden, to be read as a whole: the messages are the work.
var badFiles = []struct{ name, text string }{
	{"empty file", ""},
	{"only comments", "# topdog\n\n"},
	{"address without quotes", "address = 192.168.1.250\n"},
	{"address without quotes, with comment", "address = 192.168.1.250  # the VIP\n"},
	{"address is a number", "address = 5\n"},
	{"address is IPv6", "address = \"fd00::250\"\n"},
	{"address is a name", "address = \"pi.local\"\n"},
	{"address with port", "address = \"192.168.1.250:80\"\n"},
	{"address with netmask", "address = \"192.168.1.250/255.255.255.0\"\n"},
	{"address with prefix 33", "address = \"192.168.1.250/33\"\n"},
	{"address with leading zeros", "address = \"192.168.001.250\"\n"},
	{"address with a space", "address = \"192.168.1.250 \"\n"},
	{"address is the network", "address = \"192.168.1.0/24\"\n"},
	{"address is the broadcast", "address = \"192.168.1.255/24\"\n"},
	{"address is 0.0.0.0", "address = \"0.0.0.0\"\n"},
	{"address is multicast", "address = \"224.0.0.254\"\n"},
	{"address is loopback", "address = \"127.0.0.1\"\n"},
	{"address is link-local", "address = \"169.254.1.1\"\n"},
	{"address listed twice", "address = [\n\t\"192.168.1.250\",\n\t\"192.168.1.250/24\",\n]\n"},
	{"address list with three kinds of error", "address = [\"192.168.1.250\", 7, \"x\", [\"192.168.1.251\"]]\n"},
	{"address list empty", "address = []\n"},
	{"too many addresses", "address = [" + strings.Repeat("\"10.0.0.1\", ", 17) + "]\n"},
	{"unknown keys, all at once", good + "hartbeat = \"100ms\"\npriorty = 7\nvip = \"10.0.0.1\"\nnodes = 3\nfrobnicate = true\n"},
	{"wrong case", "Address = \"192.168.1.250\"\n"},
	{"keepalived's words", "virtual_ipaddress = \"192.168.1.250\"\nvirtual-router-id = 51\nadvert_int = 1\n"},
	{"section", "[topdog]\naddress = \"192.168.1.250\"\nprioritty = 3\n"},
	{"dotted key", good + "led.pin = \"GPIO17\"\n"},
	{"key set twice", good + "priority = 1\n" + "priority = 2\n"},
	{"control character in a text", good + "name = \"a\ab\"\n"},
	{"heartbeat as number", good + "heartbeat = 100\n"},
	{"heartbeat without quotes", good + "heartbeat = 100ms\n"},
	{"heartbeat without unit", good + "heartbeat = \"100\"\n"},
	{"heartbeat with space", good + "heartbeat = \"100 ms\"\n"},
	{"heartbeat too short", good + "heartbeat = \"5ms\"\n"},
	{"heartbeat too long", good + "heartbeat = \"1m\"\n"},
	{"heartbeat with a fraction", good + "heartbeat = \"100.5ms\"\n"},
	{"preempt_delay without unit", good + "preempt_delay = \"100\"\n"},
	{"preempt_delay without quotes", good + "preempt_delay = 100\n"},
	{"preempt_delay too short", good + "preempt_delay = \"0s\"\n"},
	{"preempt_delay too long", good + "preempt_delay = \"61m\"\n"},
	{"patience without unit", good + "patience = \"100\"\n"},
	{"patience without quotes", good + "patience = 1\n"},
	{"patience without quotes or unit", good + "patience = 250\n"},
	{"patience of nothing", good + "patience = \"0s\"\n"},
	{"patience too short", good + "patience = \"1ms\"\n"},
	{"patience too short for the fastest heartbeat", good + "patience = \"3ms\"\nheartbeat = \"10ms\"\n"},
	{"patience too long", good + "patience = \"61s\"\n"},
	{"patience shorter than the grace", good + "patience = \"90ms\"\nheartbeat = \"1s\"\n"},
	{"priority as text", good + "priority = \"200\"\n"},
	{"priority with fraction", good + "priority = 1.5\n"},
	{"priority too high", good + "priority = 255\n"},
	{"priority negative", good + "priority = -1\n"},
	{"priority beyond 64 bits", good + "priority = 99999999999999999999\n"},
	{"preempt as text", good + "preempt = \"yes\"\n"},
	{"preempt capitalized", good + "preempt = True\n"},
	{"preempt as number", good + "preempt = 1\n"},
	{"group empty", good + "group = \"\"\n"},
	{"group too long", good + "group = \"" + strings.Repeat("g", 33) + "\"\n"},
	{"group with umlaut", good + "group = \"Küche\"\n"},
	{"group as list", good + "group = [\"a\"]\n"},
	{"group as date", good + "group = 2026-01-01\n"},
	{"group as table", good + "group = { name = \"a\" }\n"},
	{"id zero", good + "id = 0\n"},
	{"id too large", good + "id = 4294967296\n"},
	{"id is a word", good + "id = \"pi3\"\n"},
	{"id is the floating address", good + "id = \"192.168.1.250\"\n"},
	{"interface too long", good + "interface = \"a-very-long-interface\"\n"},
	{"interface is loopback", good + "interface = \"lo\"\n"},
	{"algorithm misspelled", good + "algorithm = \"heri\"\n"},
	{"algorithm unknown", good + "algorithm = \"raft\"\n"},
	{"multicast without port", good + "multicast = \"224.0.0.254\"\n"},
	{"multicast is unicast", good + "multicast = \"192.168.1.1:9254\"\n"},
	{"peers contains the floating address", good + "peers = [\"192.168.1.11\", \"192.168.1.250\"]\n"},
	{"peers with prefix and port", good + "peers = [\"192.168.1.11/24\", \"192.168.1.12:9254\"]\n"},
	{"peers on loopback", good + "peers = \"127.0.0.2\"\n"},
	{"witness is the floating address", good + "witness = [\"192.168.1.1\", \"192.168.1.250\"]\n"},
	{"witness on loopback", good + "witness = \"127.0.0.1\"\n"},
	{"witness is a word and more", good + "witness = [\"auto\", \"192.168.1.1\"]\n"},
	{"witness is nobody and more", good + "witness = [\"192.168.1.1\", \"none\"]\n"},
	{"witness of an empty list", good + "witness = []\n"},
	{"witness twice the same", good + "witness = [\"192.168.1.1\", \"192.168.1.1\"]\n"},
	{"columns count characters, not bytes", good + "peers = [\"äöü\", \"x\"]\n"},
	{"led refused by gpio", good + "led = \"gpio17\"\n"},
	{"log_level misspelled", good + "log_level = \"warning\"\n"},
	{"strict without voters", good + "algorithm = \"strict\"\n"},
	{"strict with an empty list of voters", good + "algorithm = \"strict\"\nvoters = []\n"},
	{"voters without strict", good + "voters = [\"192.168.1.11\", \"192.168.1.12\", \"192.168.1.13\"]\n"},
	{"voters with another algorithm", good + "algorithm = \"bully\"\nvoters = [1, 2, 3]\n"},
	{"voters with a bad algorithm", good + "algorithm = \"stric\"\nvoters = [1, 2, 3]\n"},
	{"one voter", good + strict + "voters = \"192.168.1.11\"\n"},
	{"two voters", good + strict + "voters = [\"192.168.1.11\", \"192.168.1.12\"]\n"},
	{"a voter twice", good + strict + "voters = [\"192.168.1.11\", \"192.168.1.12\", \"192.168.1.11\"]\n"},
	{"a voter twice, by number and by address", good + strict + "voters = [3232235787, \"192.168.1.12\", \"192.168.1.11\"]\n"},
	{"voters with the floating address", good + strict + "voters = [\"192.168.1.11\", \"192.168.1.250\", \"192.168.1.13\"]\n"},
	{"voters that are none", good + strict + "voters = [\"auto\", 0, -1, \"pi3\", \"192.168.1.11/24\", true, 1.5]\n"},
	{"voters as a number", good + strict + "voters = 3\n"},
	{"voters as a date", good + strict + "voters = 2026-01-01\n"},
	{"too many voters", good + strict + "voters = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]\n"},
	{"detector misspelled", good + "detector = \"nfde\"\n"},
	{"detector unknown", good + "detector = \"phi-accrual\"\n"},
	{"detector as number", good + "detector = 3\n"},
	{"fanout misspelled", good + "fanout = \"unicst\"\n"},
	{"fanout without quotes", good + "fanout = unicast\n"},
	{"score_from misspelled", good + "algorithm = \"score\"\nscore_from = \"prioritty\"\n"},
	{"score_from without score", good + "  score_from = \"age\"\n"},
	{"score_from with another algorithm", good + "score_from = \"command\"\nscore_command = \"/bin/load\"\nalgorithm = \"bully\"\n"},
	{"score_from with a bad algorithm", good + "score_from = \"age\"\nalgorithm = \"scor\"\n"},
	{"score_from without its command", good + "algorithm = \"score\"\nscore_from = \"command\"\n"},
	{"score_from with an empty command", good + "algorithm = \"score\"\nscore_from = \"command\"\nscore_command = []\n"},
	{"command without its score_from", good + "score_command = [\"/bin/load\", \"-x\"]\n"},
	{"command for another score_from", good + "algorithm = \"score\"\nscore_from = \"age\"\nscore_command = \"/bin/load\"\n"},
	{"command not absolute", good + fromCommand + "score_command = [\"load\", \"-x\"]\n"},
	{"command as for a shell", good + fromCommand + "score_command = \"/bin/load -x 3\"\n"},
	{"command empty", good + fromCommand + "score_command = \"\"\n"},
	{"command with a space", good + fromCommand + "score_command = \"/bin/load \"\n"},
	{"command in the home directory", good + fromCommand + "score_command = \"~/load\"\n"},
	{"command with a number", good + fromCommand + "score_command = [\"/bin/load\", 3]\n"},
	{"command with a NUL", good + fromCommand + "score_command = [\"/bin/load\", \"a\\u0000b\"]\n"},
	{"command of too many words", good + fromCommand + "score_command = [\"/bin/load\"" + strings.Repeat(", \"x\"", 16) + "]\n"},
	{"other names of the election's keys", good + "failure_detector = \"ask\"\nunicast = true\nscript = \"/bin/load\"\nscore-command = \"/bin/load\"\nfan_out = \"unicast\"\nscore_form = \"age\"\n"},
	{"hold unknown", good + "hold = \"forever\"\n"},
	{"hold as it was once written", good + "hold = \"tun\"\n"},
	{"socket relative", good + "socket = \"topdog.sock\"\n"},
	{"key in the configuration", good + "key = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n"},
	{"key instead of its path", good + "key_file = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n"},
	{"password in the configuration", good + "password = hunter2\n"},
	{"key_file in the home directory", good + "key_file = \"~/key\"\n"},
	{"colon", "address: \"192.168.1.250\"\n"},
	{"no value", "address =\n"},
	{"no equals sign", "address\n"},
	{"typographic quotes", "address = “192.168.1.250”\n"},
	{"text not closed", "address = \"192.168.1.250\n"},
	{"list not closed", "address = [\"192.168.1.250\",\n"},
	{"two keys on a line", good + "priority = 1 preempt = true\n"},
	{"shell comment style", good + "; a comment\n"},
	{"escape in path", good + "socket = \"/run\\topdog\\qtopdog\"\n"},
	{"not UTF-8", good + "group = \"K\xfcche\"\n"},
	{"terminal escape", good + "name = \"a\\u001b[31mb\"\n"},
	{"windows line ends and tabs", "address = \"192.168.1.250\"\r\n\tpriority\t=\t\"x\"\r\n"},
	{"long line", good + "name = \"" + strings.Repeat("n", 300) + "\"  # " + strings.Repeat("c", 300) + "\n"},
	{"errors before a syntax error", good + "priority = 300\nheartbeat = 100ms\n"},
	{"unknown key twice", good + "frobnicate = 1\nfrobnicate = 2\n"},
	{"misspelled key without quotes", good + "hartbeat = 100ms\n"},
	{"many problems", good + strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyz0123456789", ""), " = 1\n") + " = 1\n"},
	{"check: nothing to look at", good + "[[check]]\nevery = \"1s\"\n"},
	{"check: two kinds in one", good + "[[check]]\nunit = \"nginx.service\"\ntcp = \"127.0.0.1:80\"\n"},
	{"check: unit without its type", good + "[[check]]\nunit = \"nginx\"\n"},
	{"check: one bracket", good + "[check]\nunit = \"nginx.service\"\n"},
	{"check: plural", good + "[[checks]]\nunit = \"nginx.service\"\n"},
	{"check: no section", good + "unit = \"nginx.service\"\n"},
	{"check: list and tables", good + "check = [{ unit = \"a.service\" }]\n[[check]]\nunit = \"b.service\"\n"},
	{"check: list of texts", good + "check = [\"nginx.service\"]\n"},
	{"check: a text", good + "check = \"nginx.service\"\n"},
	{"check: a key of the file behind it", good + "[[check]]\nunit = \"nginx.service\"\npriority = 7\n"},
	{"check: misspelt keys", good + "[[check]]\nunit = \"nginx.service\"\nevrey = \"1s\"\nweight = 20\n"},
	{"check: times", good + "[[check]]\nunit = \"a.service\"\nevery = 1\n[[check]]\nunit = \"b.service\"\nevery = \"10ms\"\n[[check]]\nunit = \"c.service\"\ntimeout = \"2s\"\n[[check]]\nunit = \"d.service\"\nevery = \"1\"\n"},
	{"check: counts", good + "[[check]]\nunit = \"a.service\"\nrise = 0\nfall = \"3\"\n"},
	{"check: when", good + "[[check]]\nunit = \"a.service\"\nwhen = \"leader\"\n[[check]]\nunit = \"b.service\"\ngrace = \"10s\"\n"},
	{"check: twice", good + "[[check]]\nunit = \"a.service\"\n[[check]]\nunit = \"a.service\"\nevery = \"1s\"\n"},
	{"check: twice but for the title", good + "[[check]]\ncommand = \"/bin/a\"\n[[check]]\ncommand = \"/bin/a\"\ntitle = \"a\"\n"},
	{"check: titles", good + "[[check]]\ncommand = \"/bin/a\"\ntitle = \"a\"\n[[check]]\ncommand = \"/bin/b\"\ntitle = \"a\"\n[[check]]\ngateway = true\ntitle = \"\"\n[[check]]\ncommand = \"/bin/c\"\ntitle = \"a\u202eb\"\n[[check]]\ncommand = \"/bin/d\"\ntitle = 7\n"},
	{"check: a title that is what another one looks at", good + "[[check]]\nunit = \"a.service\"\n[[check]]\nunit = \"b.service\"\ntitle = \"a.service\"\n[[check]]\nunit = \"c.service\"\ntitle = \"d.service\"\n[[check]]\nunit = \"d.service\"\n"},
	{"check: the name of the board below it", good + "[[check]]\nunit = \"nginx.service\"\nname = \"pi3\"\n"},
	{"check: a key twice", good + "[[check]]\nunit = \"a.service\"\nunit = \"b.service\"\n"},
	{"check: too many", good + manyChecks(17)},
	{"check: aimed at the floating address", good + "[[check]]\ntcp = \"192.168.1.250:80\"\n[[check]]\nhttp = \"http://192.168.1.250/\"\n[[check]]\ndns = \"pi.hole @192.168.1.250\"\n"},
	{"check: aimed at everything", good + "[[check]]\nhttp = { url = \"https://0.0.0.0/\", status = 200 }\n"},
	{"check: tcp", good + "[[check]]\ntcp = \"127.0.0.1\"\n[[check]]\ntcp = \"127.0.0.1:0\"\n[[check]]\ntcp = \"127.0.0.256:80\"\n"},
	{"check: http", good + "[[check]]\nhttp = \"127.0.0.1\"\n[[check]]\nhttp = { host = \"a\" }\n[[check]]\nhttp = { url = \"http://127.0.0.1/\", staus = [200] }\n[[check]]\nhttp = { url = \"http://127.0.0.1/\", status = [\"200\"] }\n[[check]]\nhttp = \"http://me:secret@127.0.0.1/\"\n"},
	{"check: dns", good + "[[check]]\ndns = \"pi.hole\"\n[[check]]\ndns = \"a..b @127.0.0.1\"\n"},
	{"check: programs", good + "[[check]]\nexec = \"nginx\"\n[[check]]\ncommand = []\n[[check]]\ncommand = \"/usr/bin/dig @127.0.0.1\"\n[[check]]\ngateway = false\n"},
	{"page_listen without a colon", good + "page_listen = \"9254\"\n"},
	{"page_listen as a number", good + "page_listen = 8080\n"},
	{"page_listen without a port", good + "page_listen = \"192.168.1.11\"\n"},
	{"page_listen of IPv6 without a port", good + "page_listen = \"fd00::1\"\n"},
	{"page_listen of port 0", good + "page_listen = \":0\"\n"},
	{"page_listen of a port that is too large", good + "page_listen = \"192.168.1.11:65536\"\n"},
	{"page_listen of a service", good + "page_listen = \":http\"\n"},
	{"page_listen of a name", good + "page_listen = \"localhost:9254\"\n"},
	{"page_listen of a multicast address", good + "page_listen = \"224.0.0.254:9254\"\n"},
	{"page_listen of a link-local address", good + "page_listen = \"[fe80::1%eth0]:9254\"\n"},
	{"page_listen of the floating address", good + "page_listen = \"192.168.1.250:9254\"\n"},
	{"page_hosts with an address", good + "page_hosts = [\"192.168.1.11\", \"[fd00::1]\"]\n"},
	{"page_hosts with a URL", good + "page_hosts = \"http://topdog.lan/\"\n"},
	{"page_hosts with a port", good + "page_hosts = \"topdog.lan:9254\"\n"},
	{"page_hosts with a wildcard", good + "page_hosts = \"*.lan\"\n"},
	{"page_hosts with a final dot", good + "page_hosts = \"topdog.lan.\"\n"},
	{"page_hosts that are none", good + "page_hosts = [\"\", \"a..b\", \"-a\", \"küche\", \"1.2.3\", true]\n"},
	{"page_hosts twice the same", good + "page_hosts = [\"topdog.lan\", \"TOPDOG.lan\"]\n"},
	{"other names of the page's keys", good + "listen = \":80\"\nhosts = \"topdog.lan\"\npage_hots = \"topdog.lan\"\n"},
	{"start_grace", good + "start_grace = \"11m\"\n"},
}

func TestErrorMessages(t *testing.T) {
	var got strings.Builder
	for _, f := range badFiles {
		_, err := parseOn(testHost, "topdog.toml", []byte(f.text))
		if err == nil {
			t.Errorf("%s: accepted:\n%s", f.name, f.text)
			continue
		}
		checkProblems(t, err, f.text)
		fmt.Fprintf(&got, "=== %s\n%s\n\n", f.name, err)
	}
	golden.Compare(t, "testdata/errors.golden", got.String())
}

// checkProblems holds every error to what Errors promises.
func checkProblems(t *testing.T, err error, text string) {
	t.Helper()
	var problems Errors
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("the error is not an Errors: %#v", err)
	}
	lines := 1 + strings.Count(text, "\n")
	for i, p := range problems {
		if p.Line < 1 || p.Line > lines || p.Column < 1 {
			t.Errorf("problem %d is outside the file of %d lines: %d:%d", i, lines, p.Line, p.Column)
		}
		if i > 0 && p.Line < problems[i-1].Line {
			t.Errorf("problem %d is not in the order of the lines", i)
		}
		if p.Message == "" || strings.ContainsAny(p.Message+p.Hint+p.source, "\n\x1b\x00") {
			t.Errorf("problem %d has a message that is empty or unfit for a terminal: %q %q %q", i, p.Message, p.Hint, p.source)
		}
		// Words of Go, or of go-toml's insides, do not belong in front of a user.
		for _, word := range []string{"struct", "config.", "unstable", "U+", "uint", "%!", "toml:"} {
			if strings.Contains(p.Message, word) && !strings.Contains(text, word) {
				t.Errorf("problem %d speaks of %q: %s", i, word, p.Message)
			}
		}
	}
	if len(problems) > maxProblems+1 {
		t.Errorf("%d problems are more than anyone reads", len(problems))
	}
}

// A key or password must not reach the journal by way of an error message.
func TestErrorsKeepSecrets(t *testing.T) {
	for _, text := range []string{
		good + "key = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n",
		good + "key_file = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n",
		good + "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
		good + "password = 00112233 hunter2\n",
		good + "secret: hunter2 # 00112233\n",
		good + "Pass-Phrase = \"hunter2, 00112233\"\n", // not a known name, and not hidden: see below
	} {
		_, err := parseOn(testHost, "topdog.toml", []byte(text))
		if err == nil {
			t.Fatalf("accepted:\n%s", text)
		}
		if strings.Contains(text, "Pass-Phrase") {
			continue // the guard against a test that hides everything: this one shows its line
		}
		if strings.Contains(err.Error(), "00112233") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the message gives the secret away:\n%s", err)
		}
	}
}

func TestExcerptStaysUnderTheMark(t *testing.T) {
	line := strings.Repeat("a", 200) + "HERE" + strings.Repeat("b", 200)
	for column := 1; column <= len(line); column++ {
		shown, indent := excerpt(line, column)
		at := len([]rune(indent))
		if got, want := []rune(shown)[at], []rune(line)[column-1]; got != want {
			t.Fatalf("column %d: the mark is under %q, not %q", column, got, want)
		}
		if n := len([]rune(shown)); n > maxExcerpt+2 {
			t.Fatalf("column %d: the excerpt has %d characters", column, n)
		}
	}
}
