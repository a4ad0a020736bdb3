package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"topdog/internal/lab/compare"
	"topdog/internal/lab/sim"
)

// contestant is etcd's raft. A tick is a heartbeat interval, as etcd has it, and
// a follower that hears nothing for electionTicks to 2·electionTicks of them
// stands for election; etcd's own default is 10. raft draws that time itself,
// so a seed does not fix its figures to the last digit.
func contestant(name string, electionTicks int) compare.Contestant {
	fail := func(_ context.Context, n int, seed uint64, c compare.Conditions) (compare.Outcome, error) {
		return fail(n, seed, electionTicks, c)
	}
	return compare.Contestant{Name: name, Fail: fail}
}

// agreeTimeout bounds an election.
const agreeTimeout = time.Minute

func fail(n int, seed uint64, electionTicks int, conditions compare.Conditions) (compare.Outcome, error) {
	g, err := newCluster(n, seed, electionTicks, conditions)
	if err != nil {
		return compare.Outcome{}, err
	}
	agreed := func() bool { return g.agreed() != nil }
	if !g.lan.RunUntil(agreed, agreeTimeout) {
		return compare.Outcome{}, fmt.Errorf("they did not agree within %v", agreeTimeout)
	}
	g.lan.Run(compare.Settling)
	old := g.agreed()
	if old == nil {
		return compare.Outcome{}, errors.New("they lost their leader although nothing had failed")
	}
	g.lan.Run(time.Duration(g.lan.Rand().Int64N(int64(conditions.Interval))))
	old.dead = true
	failed := g.lan.Now()
	g.messages = 0
	if !g.lan.RunUntil(func() bool { return g.leader() != nil }, agreeTimeout) {
		return compare.Outcome{}, fmt.Errorf("they elected nobody within %v", agreeTimeout)
	}
	claimed := g.lan.Now()
	if !g.lan.RunUntil(agreed, agreeTimeout) {
		return compare.Outcome{}, fmt.Errorf("they did not agree on a new leader within %v", agreeTimeout)
	}
	return compare.Outcome{
		Messages: g.messages, Packets: g.messages, // raft knows no multicast
		Time: claimed - failed, Agreed: g.lan.Now() - failed,
	}, nil
}

// cluster is a group of raft nodes on a simulated LAN.
type cluster struct {
	lan      *sim.Sim
	nodes    []*node // by id - 1
	messages int     // that belong to elections
}

type node struct {
	*raft.RawNode
	id      uint64
	cluster *cluster
	storage *raft.MemoryStorage
	dead    bool
}

func newCluster(n int, seed uint64, electionTicks int, conditions compare.Conditions) (*cluster, error) {
	g := &cluster{lan: sim.New(seed, conditions.Wire)}
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = uint64(i) + 1
	}
	for _, id := range ids {
		storage := raft.NewMemoryStorage()
		// The group's members are known to all from the start.
		err := storage.ApplySnapshot(raftpb.Snapshot{Metadata: raftpb.SnapshotMetadata{
			Index: 1, Term: 1, ConfState: raftpb.ConfState{Voters: ids},
		}})
		if err != nil {
			return nil, err
		}
		raw, err := raft.NewRawNode(&raft.Config{
			ID: id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: storage, Applied: 1,
			MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256,
			PreVote: true, CheckQuorum: true, // as etcd sets them
			Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
		})
		if err != nil {
			return nil, err
		}
		node := &node{RawNode: raw, id: id, cluster: g, storage: storage}
		g.nodes = append(g.nodes, node)
		// Boards are not switched on in step.
		g.lan.At(time.Duration(g.lan.Rand().Int64N(int64(conditions.Interval))), func() { node.tick(conditions.Interval) })
	}
	return g, nil
}

func (n *node) tick(every time.Duration) {
	if n.dead {
		return
	}
	n.Tick()
	n.act()
	n.cluster.lan.At(every, func() { n.tick(every) })
}

// act stores and sends what the node wants stored and sent.
func (n *node) act() {
	for n.HasReady() {
		ready := n.Ready()
		// Memory loses nothing, so there is nothing to wait for and no error to come.
		if !raft.IsEmptyHardState(ready.HardState) {
			_ = n.storage.SetHardState(ready.HardState)
		}
		_ = n.storage.Append(ready.Entries)
		for _, m := range ready.Messages {
			n.cluster.carry(m)
		}
		n.Advance(ready)
	}
}

// carry sends a message. Heartbeats are sent all the time and do not count.
func (g *cluster) carry(m raftpb.Message) {
	if m.Type != raftpb.MsgHeartbeat && m.Type != raftpb.MsgHeartbeatResp {
		g.messages++
	}
	to := g.nodes[m.To-1]
	g.lan.Carry(func() {
		if to.dead {
			return
		}
		// A message that is out of place, such as a late vote, is refused; so it should be.
		_ = to.Step(m)
		to.act()
	})
}

// leader returns a live node that leads, or nil.
func (g *cluster) leader() *node {
	for _, n := range g.nodes {
		if !n.dead && n.BasicStatus().RaftState == raft.StateLeader {
			return n
		}
	}
	return nil
}

// agreed returns the leader that all live nodes follow, or nil.
func (g *cluster) agreed() *node {
	leader := g.leader()
	if leader == nil {
		return nil
	}
	for _, n := range g.nodes {
		if !n.dead && n.BasicStatus().Lead != leader.id {
			return nil
		}
	}
	return leader
}
