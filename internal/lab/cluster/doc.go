// Package cluster runs daemons on the boards of a LAN of network namespaces, and waits for what
// they do.
//
// A [Cluster] is the LAN with a floating address and a record of who has it. A [Daemon] is a
// program on one of its boards, whatever it is; a [Topdog] is one with topdog's configuration,
// which can be asked for its status. [Cluster.Agreed] says whether several follow one leader: by
// their own words, and by what the kernels report.
//
// Everything that fails returns an error, so that tests and benchmarks can use it alike.
package cluster
