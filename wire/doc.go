// Package wire turns the messages of topdog into packets and back, and keeps
// forged, foreign and recorded packets away from the election.
//
// This comment is the specification of the protocol, byte by byte. The code
// follows it; where they differ, the code is wrong.
//
// # Transport
//
// One message is one UDP datagram over IPv4.
//
//	multicast group   224.0.0.254          DefaultGroup; RFC 4727: for experiments, link-local
//	port              9254                 DefaultGroup
//	time to live      255                  TTL; a packet that arrives with less is dropped (RFC 5082)
//	longest packet    1472 bytes           MaxPacket; no fragments on Ethernet
//
// Port and multicast group may be configured. Messages to all boards are multicast. A reply is
// unicast to the address that the question came from, on this port, if another board of the link
// may have that address. Nothing is sent to a gateway. Questions are broadcast as well, to
// 255.255.255.255 on the interface of the group. While a board says that it hears no multicast,
// all messages to all boards are broadcast too: switches that prune multicast leave broadcast
// alone. One question goes to the floating address. A message means the same on each of these
// ways, and may come on several of them: the replay guard accepts the first copy.
//
// All numbers are unsigned and big-endian. All offsets count bytes from 0.
//
// # Header
//
// Every packet begins with 20 bytes:
//
//	 0      version (high 3 bits) = 2; type (low 5 bits)
//	 1      flags (high 4 bits); algorithm (low 4 bits), 1 to 15
//	          0x80  authenticated: a tag ends the packet
//	          0x40  leading: the sender leads at the time of sending
//	          0x20  reply: sent to answer another message and not on schedule
//	          0x10  mark of the key that made the tag, see "Authentication"; 0 without one
//	 2 -  3 group tag: the first 16 bits of SHA-256("topdog/1 group tag" 00 group)
//	 4 -  7 sender: its id, not 0
//	 8 - 10 term: the highest one that the sender knows of
//	11      priority of the sender: 0 must not lead
//	12 - 15 grade of the sender (high 2 bits): 0 passing, 1 probation, 2 drained, 3 failing;
//	        incarnation (low 30 bits): drawn at random once in the life of a process
//	16 - 19 sequence: counts the packets of an incarnation, from 1
//
// The group is the name of the group in UTF-8; 00 is a single zero byte here
// and below. On a second path (OnSecondPath) it is that name, 00 and "second path", so that the two paths have
// other group tags and packet keys, and a packet of one is none of the other. A message that goes by both has the same
// sequence number on both. An id is 32 bits and names one board of the group; by default it is
// the board's IPv4 address. Every packet has a new, greater sequence number, no matter
// who it is for; only copies of one packet share it. Numbers may be skipped. A
// sender that has used 4294967295 must begin a new incarnation.
//
// The algorithms are
//
//	1 heir   2 bully   3 score   4 modified   5 candidates   6 minid   7 agents   8 strict
//
// # Bodies
//
// The body begins at offset 20. Offsets below are within the packet; the last
// number is the size of a plain packet.
//
//	 1 HEARTBEAT     20 - 21 interval, ms, not 0
//	                 22      grace, see below
//	                 23      number: counts heartbeats modulo 256                  24 bytes
//
//	 2 HELLO         20 - 23 following: the leader's id, or 0
//	                 24 - 27 age of the process, s
//	                 28 - 29 interval, ms, not 0: until the next HELLO
//	                 30      flags: 0x01 hears its leader, but not by multicast
//	                 31      grace that the sender wishes for; 0: no wish
//	                 32      n: length of the name, 0 to 32
//	                 33 ...  name: n bytes of UTF-8, no control characters     33 + n bytes
//	                         (Cc) and no marks of direction (Bidi_Control)
//	             33+n - 36+n score, optional                                   37 + n bytes
//	             37+n - 40+n fingerprint of the key that the sender signs with;
//	                         optional, and only together with the score and with
//	             41+n - 44+n fingerprint of the other key that it accepts, or 0  45 + n bytes
//	             45+n - 46+n settings, optional, and only together with the fingerprints:
//	                         time between two heartbeats, ms
//	             47+n        m: number of floating IPv4 addresses, 0 to 255
//	             48+n ...    m times: floating address (4 bytes)            48 + n + 4m bytes
//	          48+n+4m        p: length of the version of the sender's program, 0 to 32;
//	                         optional, and only together with the settings
//	          49+n+4m ...    that version: p bytes, as the name              49 + n + 4m + p bytes
//	        49+n+4m+p        q: number of floating IPv6 addresses, 0 to 20;
//	                         optional, and only together with the version
//	        50+n+4m+p ...    q times: floating address (16 bytes)      50 + n + 4m + p + 16q bytes
//
//	 3 ELECTION      20 - 23 suspect: its id, or 0 at a cold start
//	                 24 - 27 incarnation of the suspect
//	                 28 - 31 last heard: sequence of its newest HEARTBEAT
//	                 32      round
//	                 33      flags: 0x01 the sender may not claim                  34 bytes
//	                 34 - 37 score, optional                                       38 bytes
//
//	 4 ANSWER        20 - 23 leader: its id, or 0 if the sender knows none
//	                 24 - 27 incarnation of the leader
//	                 28 - 31 last heard: sequence of its newest HEARTBEAT
//	                 32 - 35 age of that HEARTBEAT, µs
//	                 36      round: copied from the question                       37 bytes
//
//	 5 COORDINATOR   20 - 23 coordinator: its id, not 0
//	                 24 - 25 interval, ms, not 0
//	                 26      grace
//	                 27      number                                                28 bytes
//	                 28 - 31 score, optional, and only together with
//	                 32      n: number of candidates, 0 to 255
//	                 33 ...  n times: id (4 bytes, not 0)                     33 + 4n bytes
//
//	 6 RESIGN        20 - 23 successor: its id, or 0                               24 bytes
//
//	 7 QUERY         20      purpose: 0 join, 1 handover
//	                 21      round                                                 22 bytes
//
//	 8 CHALLENGE     20 - 23 target: its id, not 0
//	                 24 - 27 incarnation of the target
//	                 28 - 43 nonce                                                 44 bytes
//
//	 9 PROOF         20 - 35 nonce: copied from the CHALLENGE                      36 bytes
//
//	10 HALT          20 - 23 suspect: its id, or 0                                 24 bytes
//
//	11 START         20 - 23 round                                                 24 bytes
//	12 ACK           20 - 23 round                                                 24 bytes
//	13 COLLECT       20 - 23 round                                                 24 bytes
//
//	14 REPORT        20 - 23 round
//	                 24 - 27 timestamp
//	                 28      n: number of standings, 0 to 255
//	                 29 ...  n times: id (4 bytes, not 0), priority (1 byte)  29 + 5n bytes
//
//	15 LEADER        20 - 23 leader: its id, not 0
//	                 24 - 27 timestamp                                             28 bytes
//
//	16 OK            20 - 23 round
//	                 24      n: number of trusted boards, 0 to 255
//	                 25 ...  n times: id (4 bytes, not 0)                     25 + 4n bytes
//
//	17 RIVAL         20 - 23 rival: the leader that this is for, not 0
//	                 24      decision: 0 open, 1 yield
//	                 25      reach: boards heard following the sender
//	                 26 - 29 age of the sender's reign, ms                         30 bytes
//
//	18 SUPPORT       20 - 23 leader: its id, not 0
//	                 24 - 27 incarnation of the leader
//	                 28 - 30 term of the heartbeat
//	                 31 - 34 sequence of the heartbeat
//	                 35 - 38 voters, see below                                     39 bytes
//
//	19 VOTE          20      ballot: 0 request, 1 withdraw, 2 list
//	                 21 - 24 number of the request
//	                 25 - 26 interval, ms, not 0
//	                 27      grace
//	                 28 - 31 voters                                                32 bytes
//
//	20 GRANT         20 - 23 candidate: its id, not 0
//	                 24 - 27 incarnation of the candidate
//	                 28 - 31 number of the request
//	                 32 - 35 voters                                                36 bytes
//
//	21 PAUSE         20 - 23 number of the pause, or of its end, not 0
//	                 24 - 27 leader: who alone may lead, or 0 if the pause is over
//	                 28 - 31 left: until it ends by itself, ms                     32 bytes
//
// A grace is how late a heartbeat may be before anybody takes over. Its byte is a
// floating-point number: with the exponent e in the high 4 bits and the mantissa m in the low
// 4 bits it stands for (16 + m) · 2^e sixteenths of a millisecond. 0 stands for the default of
// the interval. A sender rounds up.
//
// Voters is the hash of the sender's list of voters: the first 32 bits of SHA-256 over their
// ids, 4 bytes each, in ascending order. Only the algorithm strict has voters.
//
// The algorithm score ranks the boards by their scores. The algorithm candidates
// has candidates, the boards that hold the elections. Both fields are optional:
// they are the tail of their body. A sender omits the tail if it would hold nothing but
// zeros. A receiver reads a missing tail as zeros: a score of 0, and no candidates. A tail
// that is there may hold zeros.
//
// A HELLO has five tails, and each one comes with all before it. The first is the score. The
// second has the fingerprints; it is missing if the sender has no key, or if its program
// cannot change keys. The third has the settings; a time of 0 between heartbeats says that
// the sender has not told them. The fourth is the version of the sender's program, for people
// alone. The fifth has the floating addresses of IPv6, which belong to the settings; a program
// that does not know of it hears of the IPv4 ones.
//
// A sender rounds the interval until its next message up, so that nobody expects
// the message too early. It rounds ages down. The greatest age that fits stands
// for all greater ones. A receiver accepts purposes, decisions, ballots, algorithms and
// priorities that it does not know; the election decides what to do with them.
//
// # Authentication
//
// A group has a key of 32 random bytes, or none, and two while it changes its key. With a key,
// every packet has the flag 0x80, and its last 16 bytes are
//
//	tag        = the first 16 bytes of HMAC-SHA-256(packet key, everything before the tag)
//	packet key = HKDF-SHA-256(secret: group key, no salt,
//	                          info: "topdog/1 packet authentication" 00 group, 32 bytes)
//
// after RFC 2104 (section 5 for the truncation), RFC 4868 (HMAC-SHA-256-128)
// and RFC 5869. So a HEARTBEAT has 40 bytes. The tag says that a holder of the
// key wrote the packet, to this group, in this version. It does not say which
// holder: whoever has the key can speak for every board. Nothing is encrypted.
//
// A group without a key is open to everybody on its LAN.
//
// A board accepts one key or two, and signs with the first one. Boards that have the same two
// keys in different orders understand each other.
//
//	fingerprint = HKDF-SHA-256(secret: group key, no salt,
//	                           info: "topdog/1 key fingerprint" 00, 4 bytes), as a number; 1 stands for 0
//	mark        = the highest bit of the fingerprint
//
// The fingerprint names a key and is no secret. The two keys of a board have different marks; a
// board refuses a configuration with two keys of the same mark. A sender sets the flag 0x10 to the
// mark of the key that it signs with. A receiver with two keys computes the tag with the key that
// has the mark of the packet, and with no other, so a packet with a bad tag costs one HMAC. A
// receiver with one key ignores the flag, since programs that cannot change keys always send 0.
// The flag is authenticated, like everything before the tag.
//
// A key never travels on the wire, not even encrypted with the key before it: a thief of the old
// key would learn the new one.
//
// # What is accepted
//
// A receiver makes these tests, in this order. The first one that fails
// decides, and nothing of the packet is used.
//
//	 1  length      at least 20 bytes (TooShort), at most 1472 (TooLong)
//	 2  version     2 (OtherVersion if tests 3 to 5 pass, else BadVersion)
//	 3  group tag   ours (OtherGroup)
//	 4  flag 0x80   set if we have a key (Unauthenticated), clear if not (NotExpectingAuth)
//	 5  tag         with a key: 36 bytes at least (TooShort), and the tag is that of the
//	                accepted key with the packet's mark (BadTag)
//	 6  type        known (UnknownType)
//	 7  body        as long as its type demands, less name, lists and tail (TooShort)
//	 8  header      algorithm, sender and sequence not 0 (Malformed)
//	 9  body        the fields as said above, in their order; name and lists end
//	                within the packet (Malformed); a tail that has begun is there
//	                as a whole (TooShort)
//	10  replay      see below (Own, Duplicate, Replayed, Unproven, TableFull)
//
// A packet may be longer than its message: what lies between the body (with its
// tail) and the tag, or between the body and the end of a plain packet, is
// authenticated with the rest, and then ignored.
//
// # Versions
//
// A change that older receivers may ignore is added at the end of a body, as a new
// type, or as a new purpose or algorithm, and the version stays. A change that they
// must not ignore gets a new version. If something is added behind an optional tail, whoever
// sends it sends the tail as well.
//
// All versions have the same bytes 0 to 7, the same tag at the end, and keys and group tags
// that are derived with the same labels. So a board recognises a board of its own group that
// speaks another version, and says so. Nothing else of such a packet is used.
//
// # Replay protection
//
// A tag alone does not tell a packet from a recording of it. Boards have no
// clock that survives a power cut and write nothing to disk, so the protection
// uses neither. A receiver remembers, of every incarnation that it listens to,
// the greatest sequence number and which of the 63 before it were heard (RFC
// 4303 section 3.4.3, RFC 6479).
//
//   - A sequence number that was heard is a Duplicate, one that lies 64 or
//     more below the greatest is Replayed.
//   - Our own id with our own incarnation is our Own packet.
//
// First contact needs more. In a group with a key, a receiver that gets a packet
// from an (id, incarnation) to which it does not listen
//
//   - drops the packet as Unproven, even if it is a CHALLENGE or a PROOF;
//   - sends a CHALLENGE with a random nonce to where the packet came from, but not
//     more often than every 20 ms to this life at this address. That time doubles with
//     every repetition, up to 640 ms. For 500 ms repetitions carry the same nonce, so
//     that a slow answer still counts;
//   - begins to listen when a PROOF with that nonce comes from that (id,
//     incarnation) within 1 s of the nonce's first use. The PROOF is accepted.
//     Everything with a lower sequence number is Replayed from then on. If the
//     receiver listened to another incarnation of the id, that one is over,
//     and would have to prove itself again, by a new nonce.
//
// A board answers every CHALLENGE for its id and incarnation with a PROOF,
// whether it listens to the sender or not. PROOFs to senders to which it does not
// listen are limited to 200 per second, after 256 at once. CHALLENGEs have the same limit,
// but for all boards of the group together, since all of them would challenge the sender of
// the same recording: a board that listens to n others sends one (n+1)th of that, and at
// least 8 at once. A CHALLENGE that is met does not count. When half of those that may be sent
// at once are spent, the rest is kept for source addresses that have not had theirs. When two
// boards meet, usually neither listens to the other, and then the reply is a PROOF
// and a CHALLENGE.
//
// So nothing that was sent before the nonce was drawn can be believed: no
// packet of a dead board, none of an earlier life, none twice, and not even by
// a board that has just booted. What remains possible without a clock:
// somebody who can suppress a packet can deliver it later, once, as long as
// its sender was not restarted and has not been heard 64 packets further on.
//
// In a group without a key, a challenge would prove nothing, and there is
// none. First contact is accepted at once, and a new incarnation replaces the
// old one. The receiver still accepts new packets of the incarnation before that,
// since they may merely be late. It cannot tell them from forgeries.
// CHALLENGE has no effect.
//
// A packet with our own id and a foreign incarnation is from a board with the
// same id (a namesake), or from our own past. With a key, the CHALLENGE and
// the PROOF between namesakes are multicast, since their unicast address may
// be the same too, and only a board that has proven itself counts. Without a
// key, every such packet counts. There may be several namesakes, so a board listens to up to 8
// incarnations of its own id at the same time: one that proves itself does not end another.
//
// One of two accepted keys may be stolen, and what a receiver has learned by that key must not
// outlive it. So a receiver keeps a window for each key, and a life has to prove itself with each:
//
//   - A packet that is signed with the accepted key with which its life has not proven itself
//     counts, since the life has proven itself with the other one. The window of that key begins
//     behind the greatest sequence number that was heard with the other. The receiver sends a
//     CHALLENGE as at first contact, whether it accepts the packet or not. When it accepts a PROOF
//     that is signed with that key, everything with a lower sequence number is Replayed from then on.
//   - A sequence number that lies 64 or more below the greatest one that was heard with the other
//     key is Replayed as well, so a packet that somebody holds back gets too old as fast as ever.
//   - A receiver that no longer accepts a key forgets its windows. It still listens to the
//     lives that have proven themselves with the key that is left, and to no others.
//
// So a thief of one of two accepted keys can say everything in the name of every board, like a
// thief of the only key. When his key is no longer accepted, no life that he has begun, no
// place that he has taken and no sequence number that he has spent is left.
//
// A receiver listens to 255 ids at most (MaxBoards). To make room for another
// one, it forgets one that was silent for more than an hour. If there is none,
// it drops the newcomer (TableFull).
//
// # Example
//
// Group "topdog", group key 00 01 02 … 1f. Packet key:
//
//	6db5034a9c19803f38f2675479be5ad549cd398fe3506e95052a80c6fc73054c
//
// A HEARTBEAT of 10.0.0.3, which leads term 7 by the algorithm heir with
// priority 100:
//
//	41           version 2, HEARTBEAT
//	c1           authenticated, leading, heir
//	467e         group tag of "topdog"
//	0a000003     sender 10.0.0.3
//	000007       term 7
//	64           priority 100
//	1f2e3d4c     passing, incarnation
//	0000002a     sequence 42
//	0064         interval 100 ms
//	00           grace: the default of the interval
//	29           number 41
//	c635cacd1da9f9c14a7820279a4768e4   tag
//
// The fingerprint of this key is 030d726e, so its mark is 0. The key 20 21 22 … 3f has the
// fingerprint cc94506b and the packet key
//
//	abc6051eb768c74a48b037d062588f2ef53e502fedee1c2342e7043c8576d82b
//
// With this key, the second byte of the same packet is d1, and the tag is
//
//	03fe9978beb8c7b22718fc0ef01589cf
package wire
