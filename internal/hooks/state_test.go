package hooks

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		role    string
		holding bool
		want    word
	}{
		{console.RoleLeader, true, master},
		{console.RoleLeader, false, fault},
		{console.RoleFollower, false, backup},
		{console.RoleCandidate, false, backup},
		{console.RoleListener, false, backup},
		{console.RoleIsolated, false, fault},
		{console.RoleBarred, false, fault},
	} {
		for _, grade := range []string{"passing", "probation", "drained", console.GradeFailing} {
			want := tt.want
			if want == backup && grade == console.GradeFailing {
				want = fault // one that leads all the same has the address, and serves
			}
			assert.Is(t, want, wordOf(&console.Transition{Role: tt.role, Holding: tt.holding, Grade: grade}), "a %s, %s, holding %t", tt.role, grade, tt.holding)
		}
	}
}

// What becomes of transitions that come one after the other.
func TestClassify(t *testing.T) {
	type happening struct {
		after time.Duration // the one before
		event console.Event
		role  string
		holds bool
	}
	const (
		snapshot = console.EventSnapshot
		role     = console.EventRoleChanged
		released = console.EventAddressReleased
		acquired = console.EventAddressAcquired
		stopping = console.EventStopping
		gone     = console.EventDaemonGone

		isolated = console.RoleIsolated
		follower = console.RoleFollower
		leader   = console.RoleLeader
	)
	const moment = faultAfter / 10
	for _, tt := range []struct {
		name string
		in   []happening
		want []string
	}{
		{"a leader comes and goes", []happening{{0, snapshot, follower, false}, {0, role, leader, true}, {0, acquired, leader, true}, {0, role, follower, false}, {0, released, follower, false}},
			[]string{"0s BACKUP", "0s MASTER", "0s MASTER", "0s BACKUP", "0s BACKUP"}},
		{"a start without a network, for a moment", []happening{{0, snapshot, isolated, false}, {moment, role, follower, false}},
			[]string{"100ms BACKUP"}},
		{"a start without a network, for long", []happening{{0, snapshot, isolated, false}, {2 * faultAfter, role, follower, false}},
			[]string{"1s FAULT", "2s BACKUP"}},
		{"a fault that goes on", []happening{{0, snapshot, isolated, false}, {moment, role, "barred", false}, {moment, role, isolated, false}, {2 * faultAfter, role, isolated, false}},
			[]string{"1s FAULT", "2.2s FAULT"}},
		{"a leader loses its network", []happening{{0, snapshot, leader, true}, {moment, role, isolated, false}},
			[]string{"0s MASTER", "100ms FAULT"}},
		{"a leader is without the address for a moment", []happening{{0, snapshot, leader, true}, {moment, released, leader, false}, {moment, acquired, leader, true}},
			[]string{"0s MASTER", "200ms MASTER"}},
		{"a leader is without the address", []happening{{0, snapshot, leader, true}, {moment, released, leader, false}},
			[]string{"0s MASTER", "1.1s FAULT"}},
		{"and does not lead any more then", []happening{{0, snapshot, leader, true}, {moment, released, leader, false}, {moment, role, follower, false}},
			[]string{"0s MASTER", "200ms BACKUP"}},
		{"a daemon stops and is started again", []happening{{0, snapshot, leader, true}, {0, stopping, leader, true}, {0, role, follower, false}, {0, gone, "", false},
			{moment, snapshot, isolated, false}, {moment, role, follower, false}},
			[]string{"0s MASTER", "0s STOP", "0s STOP", "0s STOP", "200ms BACKUP"}},
		{"a daemon is killed", []happening{{0, snapshot, leader, true}, {0, gone, "", false}, {0, snapshot, follower, false}},
			[]string{"0s MASTER", "0s STOP", "0s BACKUP"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				happened := make(chan console.Transition)
				var got []string
				go classify(ctx, happened, func(s state) { got = append(got, fmt.Sprint(time.Since(began), " ", s.word)) })
				for _, h := range tt.in {
					time.Sleep(h.after)
					happened <- console.Transition{Event: h.event, Role: h.role, Holding: h.holds}
				}
				time.Sleep(2 * faultAfter)
				cancel()
				synctest.Wait()
				assert.Equal(t, tt.want, got, "")
			})
		})
	}
}

// A state that is taken late is the newest, and those before it are counted.
func TestNewest(t *testing.T) {
	n := newNewest()
	put := func(w word, leader string, missed uint64) {
		n.put(state{w, console.Transition{Leader: leader, Missed: missed}})
	}
	take := func(want word, overtaken int) {
		t.Helper()
		if s, _, got := n.take(); s.word != want || got != overtaken {
			t.Errorf("took %s, and %d were overtaken, want %s and %d", s.word, got, want, overtaken)
		}
	}
	put(backup, "a", 0)
	take(backup, 0)
	take(backup, 0) // it is still so
	put(master, "b", 0)
	put(backup, "a", 0)
	put(backup, "a", 0) // the same again overtakes nothing
	put(master, "b", 0)
	take(master, 2)
	put(backup, "a", 7)
	take(backup, 7)
	assert.Is(t, 1, len(n.wake), "those who were woken")
	<-n.wake
	put(backup, "a", 0)
	assert.Is(t, 0, len(n.wake), "those who were woken for nothing")
}
