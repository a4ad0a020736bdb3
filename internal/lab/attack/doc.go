// Package attack is an adversary: a laptop on the LAN that has not the key of the group, and an
// ordinary user of a board. It is what `scripts/attack` runs, on a LAN of network namespaces. What is done in each attack, and
// what must not come of it, is a scene (attacks.scene).
//
// A [Laptop] sees what everybody on its LAN sees, and sends what it likes: each frame as a whole,
// so that hardware address, source address and TTL are its own choice. A user is a process without any right.
// Every attack has an end, and leaves nothing behind.
//
// The kernels of the boards say how often the address moved meanwhile, and for how long two boards had
// it. A client that asks every millisecond says for how long nobody answered. What the boards need, and
// how long root waits for `topdog status`, is measured beside it.
package attack
