// The election of etcd's raft on topdog's simulated LAN, apart from topdog's own
// module so that it does not weigh on the daemon.
module topdog/scripts/raft

go 1.26.0

replace topdog => ../..

require (
	go.etcd.io/raft/v3 v3.6.0
	topdog v0.0.0-00010101000000-000000000000
)

require (
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
