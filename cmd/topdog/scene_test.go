package main

import (
	"testing"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/scene"
)

// TestScenes plays scenes of internal/lab/scene on boards in network namespaces: those with something that no other test shows
// there. internal/daemon plays all of them in virtual time.
func TestScenes(t *testing.T) {
	for _, name := range []string{"cable", "drain", "pause", "resign"} {
		t.Run(name, judge.Of(func(t *judge.T) {
			c := newCluster(t, 3, nil)
			stage := &onBoards{cluster.Stage{Cluster: c.Cluster, Asker: c.asker}, c}
			for _, b := range c.boards {
				stage.Boards = append(stage.Boards, b.Topdog)
			}
			s, err := scene.Named(name)
			must(t, err)
			must(t, s.Play(stage, 1))
		}))
	}
}

// onBoards plays scenes on the boards of a test, which looks whether they end as they should.
type onBoards struct {
	cluster.Stage
	test *testCluster
}

func (o *onBoards) Start(n int, config []string) error {
	b := o.test.board(n)
	err := o.Stage.Start(n, config)
	b.started, b.mayEnd = true, false
	return err
}

func (o *onBoards) Signal(n int, to scene.Processes, signal scene.Signal) error {
	b := o.test.board(n)
	b.mayEnd = b.mayEnd || signal == scene.Kill || signal == scene.Terminate
	return o.Stage.Signal(n, to, signal)
}
