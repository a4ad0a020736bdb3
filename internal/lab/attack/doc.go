// Package attack is an adversary: a laptop on the LAN that has not the key of the group.
//
// A [Laptop] sees what everybody on its LAN sees, and sends what it likes: each frame as a whole,
// so that hardware address, source address and TTL are its own choice. Every attack has an end, and
// leaves nothing behind.
package attack
