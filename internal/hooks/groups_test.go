package hooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// hooksOf runs hooks that write down what they are told of each group.
func hooksOf(t *testing.T, daemon *fakeDaemon, script string, groups ...string) book {
	dir, book := directory(t), newBook(t)
	write(t, filepath.Join(dir, "notify"), "#!/bin/sh\nbook="+string(book)+"\n"+script+"\n", 0o755)
	log, said := newTestLog()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		Run(ctx, daemon.client(), Options{Directory: dir, Timeout: deadline, Groups: groups, Log: log})
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		noChildren(t)
		if t.Failed() {
			t.Logf("it has logged:\n%s", said.text.String())
		}
	})
	return book
}

const tells = `echo "$2 $TOPDOG_GROUP $3" >>"$book"`

// told returns what was told of one group.
func (b book) told(group string) (words []string) {
	for _, line := range b.lines() {
		if word, of := strings.CutPrefix(line, group+" "+group+" "); of {
			words = append(words, word)
		}
	}
	return words
}

// wantsOf waits until that was told of a group, and nothing else.
func (b book) wantsOf(t *testing.T, group string, want ...string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%s is told %q, not %q", group, want, b.lines()), func() bool { return slices.Equal(b.told(group), want) })
}

// Each group has its own state, also while the others change, and when a daemon starts again with other groups.
func TestHooksOfGroups(t *testing.T) {
	daemon := newDaemon(t)
	daemon.restart("dns1", "dns2")
	book := hooksOf(t, daemon, tells)
	book.wantsOf(t, "dns1", "BACKUP")
	book.wantsOf(t, "dns2", "BACKUP")
	daemon.others[0].becomes(console.RoleLeader)
	book.wantsOf(t, "dns2", "BACKUP", "MASTER")
	daemon.becomes(console.RoleLeader)
	book.wantsOf(t, "dns1", "BACKUP", "MASTER")
	assert.Is(t, 4, len(book.lines()), "times that a script ran")

	daemon.restart("dns2", "dns3")
	book.wantsOf(t, "dns3", "BACKUP")
	book.wantsOf(t, "dns1", "BACKUP", "MASTER", "STOP")
	waitFor(t, "dns2 is told last that it leads", func() bool {
		told := book.told("dns2")
		return told[len(told)-1] == "MASTER"
	})
	daemon.restart("dns3")
	daemon.becomes(console.RoleLeader)
	waitFor(t, "dns3 is told last that it leads", func() bool {
		told := book.told("dns3")
		return told[len(told)-1] == "MASTER"
	})
	book.wantsOf(t, "dns1", "BACKUP", "MASTER", "STOP")
}

// Without a daemon the groups are those of the configuration.
func TestHooksOfGroupsWithoutADaemon(t *testing.T) {
	daemon := newDaemon(t)
	daemon.stop()
	book := hooksOf(t, daemon, tells, "dns1", "dns2")
	book.wantsOf(t, "dns1", "STOP")
	book.wantsOf(t, "dns2", "STOP")
	daemon.restart("dns1", "dns2")
	book.wantsOf(t, "dns1", "STOP", "BACKUP")
	book.wantsOf(t, "dns2", "STOP", "BACKUP")
}

// A script runs for one group at a time, and none is kept waiting by another that changes all the time.
func TestHooksOfGroupsTakeTurns(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	assert.NoError(t, unix.Mkfifo(gate, 0o600))
	dir, book := directory(t), newBook(t)
	write(t, filepath.Join(dir, "notify"), "#!/bin/sh\nbook="+string(book)+"\n"+tells+`; [ "$3" = BACKUP ] || read x <`+gate+`; echo "end $2" >>"$book"`+"\n", 0o755)
	log, _ := newTestLog()
	r := newRunner(Options{Directory: dir, Timeout: deadline, Log: log})
	one, _ := r.of("dns1", &console.Transition{})
	two, _ := r.of("dns2", &console.Transition{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended; noChildren(t) })
	becomes := func(i *instance, w word) {
		i.states.put(state{word: w, Transition: console.Transition{Group: i.group}})
	}
	becomes(one, backup)
	book.wantsOf(t, "dns1", "BACKUP")
	becomes(two, backup)
	book.wantsOf(t, "dns2", "BACKUP")
	becomes(one, master)
	book.wantsOf(t, "dns1", "BACKUP", "MASTER")
	becomes(two, master)
	becomes(one, backup)
	assert.NoError(t, os.WriteFile(gate, []byte("go\n"), 0))
	book.wantsOf(t, "dns2", "BACKUP", "MASTER")
	book.wantsOf(t, "dns1", "BACKUP", "MASTER") // it waits until dns2 knows
	assert.NoError(t, os.WriteFile(gate, []byte("go\n"), 0))
	book.wantsOf(t, "dns1", "BACKUP", "MASTER", "BACKUP")
	waitFor(t, "the last one has ended", func() bool { return len(book.lines()) == 10 })
	for i, line := range book.lines() {
		if ends := strings.HasPrefix(line, "end "); ends != (i%2 == 1) {
			t.Errorf("two scripts ran at once: %q", book.lines())
		}
	}
}
