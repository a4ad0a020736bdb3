/*
 * The algorithm strict: the voters' promises, the leader's lease, and the fence.
 * See README.md. The names are those of package election: votes.go and strict.go,
 * and of package lease.
 *
 * Time is counted in ticks. Every instant is stored as the time that is left until
 * then, so a run has no end and the number of states is finite all the same.
 *
 * The network is the table of all messages that were ever sent. A receiver may take
 * any of them at any time, in any order, and as often as it likes: that is loss,
 * delay, repetition and reordering. Nothing makes a process act in time, so each of
 * them may stand still for as long as it likes.
 */

#define VOTERS 3		/* majority() below is for three */
#ifndef CANDIDATES
#define CANDIDATES 2		/* the voters 0 to CANDIDATES-1 may lead */
#endif
#ifndef MESSAGES
#define MESSAGES 4		/* how many each of them sends at most */
#endif
#ifndef RESTARTS
#define RESTARTS 1		/* how many voters restart at most, all told */
#endif

#define PROMISED 3		/* lease.Promised: H + G, from receipt */
#define PROMISE_MAX PROMISED	/* lease.PromiseMax: a voter that has restarted promises nothing for so long */
#ifdef LEASE_AS_LONG_AS_PROMISE
#define LEASED PROMISED
#else
#define LEASED 2		/* lease.Leased: H + 3/4 G, from before the message was sent */
#endif
#define DRIFT PROMISED		/* the clock of board 0 misses one tick in so many, and one more */

#ifndef DRIFTS
#define DRIFTS 1
#endif
#define NOBODY 255
mtype:role = { Follower, Candidate, Leader };
mtype:message = { Vote, Heartbeat, Resign };	/* Resign is a withdrawal as well */

typedef Message {
	mtype:message type;	/* 0 if it was not sent */
	bit incarnation;	/* of the sender */
	byte ends;		/* lease.Sent.Ends: until when who answers supports the sender */
	byte answered;		/* the voters that have sent GRANT or SUPPORT, a bit each */
};

typedef Board {
	mtype:role role;
	bit incarnation;
	byte sequence;		/* of the last message */
	byte since;		/* the first message of this candidacy and reign; 0 if there is none */

	byte to;		/* promise.to */
	bit toIncarnation;	/* promise.incarnation */
	byte until;		/* promise.until */
	byte rests;		/* promise.sequence */

	byte support[VOTERS];	/* voter.until, of each voter */
	byte lease;		/* the lease as the process has computed it */
	byte fence;		/* the lease that the kernel knows: the address answers while it is not 0 */
};

Board board[VOTERS];

typedef Messages { Message at[MESSAGES + 1] };	/* from 1 */
Messages sent[CANDIDATES];

byte restarts;
byte drift;

#define P(v) board[v]
#define M(b, s) sent[b].at[s]

/* lease.Promise */
#define free(v) (P(v).until == 0)
#define is(v, b, i) (P(v).to == (b) && P(v).toIncarnation == (i))
#define allows(v, b, i) (free(v) || is(v, b, i))
#define max(a, b) ((a) > (b) -> (a) : (b))
#define min(a, b) ((a) < (b) -> (a) : (b))

#define make(v, b, i, s) \
	if \
	:: !is(v, b, i) -> P(v).to = b; P(v).toIncarnation = i; P(v).until = 0; P(v).rests = 0 \
	:: else \
	fi; \
	P(v).until = max(P(v).until, PROMISED); \
	P(v).rests = max(P(v).rests, s)

/* A promise that has ended: nothing is in the network that is older than what it has rested on. */
#define release(v) P(v).until = 0; P(v).to = NOBODY; P(v).toIncarnation = 0; P(v).rests = 0

#ifdef RELEASE_BY_OLD_RESIGN
#define newer(v, s) true
#else
#define newer(v, s) ((s) > P(v).rests)
#endif

/* lease.Support: the latest time that a majority of three reaches. */
#define majorityOf(a, b, c) max(min(a, b), min(max(a, b), c))
#define end(b) majorityOf(P(b).support[0], P(b).support[1], P(b).support[2])

/*
 * A request or heartbeat on which nobody counts any more. If it is heard late, it only binds the voter,
 * as if that stood still, so it is taken out of the network.
 */
#define over(b, s) M(b, s).type = 0; M(b, s).incarnation = 0; M(b, s).ends = 0; M(b, s).answered = 0

inline forget(b)
{
	P(b).since = 0;
	P(b).support[0] = 0; P(b).support[1] = 0; P(b).support[2] = 0;
	if
	:: b < CANDIDATES ->
		i = 1;
		do
		:: i <= MESSAGES && M(b, i).type != Resign -> over(b, i); i++
		:: i <= MESSAGES && M(b, i).type == Resign -> i++
		:: else -> i = 0; break
		od
	:: else
	fi
}

#ifdef COUNTS_FROM_RECEIPT
#define lasts(b, s) LEASED
#else
#define lasts(b, s) M(b, s).ends
#endif
#define count(b, s, v) P(b).support[v] = max(P(b).support[v], lasts(b, s)); leaseMoved(b)

/* strict.go: elected. */
inline leaseMoved(b)
{
	if
	:: P(b).role == Candidate && end(b) > 0 -> P(b).role = Leader
	:: else
	fi;
	if
	:: P(b).role == Leader -> P(b).lease = end(b)
	:: else
	fi
}

/* votes.go: it may promise its support to itself. */
inline supportSelf(b)
{
	if
	:: allows(b, b, P(b).incarnation) -> make(b, b, P(b).incarnation, 0); count(b, P(b).sequence, b)
	:: else
	fi
}

inline send(b, kind)
{
	P(b).sequence++;
	M(b, P(b).sequence).type = kind;
	M(b, P(b).sequence).incarnation = P(b).incarnation;
	M(b, P(b).sequence).ends = (kind == Resign -> 0 : LEASED)
}

inline stepDown(b)
{
	/* The address is released first, and the message is sent then. */
#ifndef RESIGNS_BEFORE_RELEASE
	P(b).fence = 0;
#endif
	P(b).lease = 0;
	P(b).role = Follower;
#ifndef REMEMBERS_SUPPORT
	forget(b);
#endif
	if
	:: is(b, b, P(b).incarnation) -> release(b)
	:: else
	fi
}

#define answer(b, s, v) \
	if \
	:: gains(b, s, v) -> M(b, s).answered = M(b, s).answered | (1 << v) \
	:: else \
	fi

/* A message of board b reaches voter v. */
#define hears(b, s) \
	:: d_step { v != b && M(b, s).type == Heartbeat && P(v).role == Follower && \
		allows(v, b, M(b, s).incarnation) -> \
		make(v, b, M(b, s).incarnation, s); \
		answer(b, s, v) } \
	:: d_step { v != b && M(b, s).type == Vote && P(v).role == Follower && \
		grants(v, b, s) -> \
		make(v, b, M(b, s).incarnation, s); \
		answer(b, s, v) } \
	:: d_step { v != b && M(b, s).type == Resign && !free(v) && is(v, b, M(b, s).incarnation) && newer(v, s) -> \
		release(v) }

#ifdef GRANTS_WHILE_BOUND
#define grants(v, b, s) true
#else
#define grants(v, b, s) allows(v, b, M(b, s).incarnation)
#endif

/* An answer reaches board b. Only those to this candidacy or reign count. */
#define counts(s, by) \
	:: d_step { s >= P(b).since && P(b).since > 0 && P(b).role != Follower && \
		(M(b, s).answered & (1 << by)) && gains(b, s, by) -> \
		M(b, s).answered = M(b, s).answered & ~(1 << by); \
		count(b, s, by) }
#define gains(b, s, v) (P(b).support[v] < lasts(b, s))

#define others(b) (P((b + 1) % VOTERS).fence > 0 || P((b + 2) % VOTERS).fence > 0)

#if MESSAGES == 2
#define each(what, x) what(x, 1) what(x, 2)
#define answers(by) counts(1, by) counts(2, by)
#elif MESSAGES == 3
#define each(what, x) what(x, 1) what(x, 2) what(x, 3)
#define answers(by) counts(1, by) counts(2, by) counts(3, by)
#elif MESSAGES == 4
#define each(what, x) what(x, 1) what(x, 2) what(x, 3) what(x, 4)
#define answers(by) counts(1, by) counts(2, by) counts(3, by) counts(4, by)
#elif MESSAGES == 5
#define each(what, x) what(x, 1) what(x, 2) what(x, 3) what(x, 4) what(x, 5)
#define answers(by) counts(1, by) counts(2, by) counts(3, by) counts(4, by) counts(5, by)
#endif

proctype voter(byte v)
{
	byte i;
	do
	each(hears, 0)
	each(hears, 1)
#if CANDIDATES > 2
	each(hears, 2)
#endif
	/* newVoting: it does not know what its former life has promised. The kernel still knows the lease. */
	:: d_step { restarts < RESTARTS ->
		restarts++;
		P(v).role = Follower;
		P(v).incarnation = 1 - P(v).incarnation;
		P(v).lease = 0;
		forget(v);
		P(v).to = NOBODY; P(v).toIncarnation = 0; P(v).rests = 0;
#ifdef FORGETS_PROMISE
		P(v).until = 0
#else
		P(v).until = PROMISE_MAX
#endif
	}
	od
}

proctype candidate(byte b)
{
	byte i;
	do
	/* elect, requestVotesAgain: it asks the voters, itself first of all. */
	:: d_step { P(b).role != Leader && P(b).sequence < MESSAGES ->
		P(b).role = Candidate;
		send(b, Vote);
		if
		:: P(b).since == 0 -> P(b).since = P(b).sequence
		:: else
		fi;
		supportSelf(b) }
	/* vote: the promise that it had made to somebody else has ended. */
	:: d_step { P(b).role == Candidate && free(b) && P(b).since > 0 && M(b, P(b).sequence).type == Vote ->
		supportSelf(b) }
	/* Sending: a heartbeat. */
	:: d_step { P(b).role == Leader && P(b).sequence < MESSAGES ->
		send(b, Heartbeat);
		supportSelf(b) }
	answers(0)
	answers(1)
	answers(2)
	/* The owner tells the kernel until when the address may answer. */
	:: d_step { P(b).role == Leader && P(b).lease > P(b).fence ->
		P(b).fence = P(b).lease;
#ifdef SHOW_LEADER
		assert(false);
#endif
#ifdef SHOW_TAKEOVER
		assert(P((b + 1) % CANDIDATES).role != Leader);
#endif
		assert(!others(b)) }
#ifdef NO_FENCE
	/* leaseEnded: the process itself takes the address away, when it comes to that. */
	:: d_step { P(b).fence > 0 && P(b).lease == 0 -> P(b).fence = 0 }
#endif
	/* RESIGN of a leader, a withdrawal of a candidate. It may never be sent, see LeaseExpired. */
	:: d_step { P(b).role != Follower && P(b).sequence < MESSAGES -> stepDown(b); send(b, Resign) }
	:: d_step { P(b).role != Follower -> stepDown(b) }
	od
}

#define down(x) x = (x > 0 -> x - 1 : 0)

#ifdef FENCE_BY_LENGTH
#define downLease(b)	/* "for so long" instead of "until then" */
#else
#define downLease(b) down(P(b).lease);
#endif
#ifdef NO_FENCE
#define downFence(b)
#else
#define downFence(b) down(P(b).fence);
#endif

#ifdef COUNTS_FROM_RECEIPT
#define expire(b, s) M(b, s).ends = 0
#else
#define expire(b, s) over(b, s)
#endif

inline passes(b)
{
	down(P(b).until);
	if
	:: free(b) -> release(b)
	:: else
	fi;
	down(P(b).support[0]); down(P(b).support[1]); down(P(b).support[2]);
	downLease(b)
	downFence(b)
	if
	:: b < CANDIDATES ->
		i = 1;
		do
		:: i <= MESSAGES && M(b, i).ends > 1 -> M(b, i).ends--; i++
		:: i <= MESSAGES && M(b, i).ends == 1 -> expire(b, i); i++
		:: i <= MESSAGES && M(b, i).ends == 0 -> i++
		:: else -> i = 0; break
		od
	:: else
	fi
}

proctype clock()
{
	byte i;
	do
	:: d_step { passes(0); passes(1); passes(2); down(drift) }
	:: d_step { DRIFTS && drift == 0 -> passes(1); passes(2); drift = DRIFT }
	od
}

init {
	atomic {
		byte v = 0;
		do
		:: v < VOTERS -> P(v).role = Follower; P(v).to = NOBODY; run voter(v); v++
		:: else -> break
		od;
		v = 0;
		do
		:: v < CANDIDATES -> run candidate(v); v++
		:: else -> break
		od;
		v = 0;
		run clock()
	}
}
