// Package hooks runs what is to run when something happens to this board: the scripts of an
// administrator (`topdog hooks`), a command while the board leads (`topdog lead`), and a unit of
// systemd while it leads (`topdog target`).
//
// Each of them is a process of its own that follows the daemon's stream of transitions, see
// [console.Client.Follow]. None of them is part of the daemon: what an administrator's script does
// must not come near the heartbeats.
//
// All three see the board as keepalived's scripts do, in one of four states ([state]). What happens
// while something runs is not piled up: the newest state counts, and is always delivered.
package hooks
