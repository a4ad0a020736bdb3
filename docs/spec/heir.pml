/*
 * The algorithm heir, the default: the lease without voters, and the lapse.
 * See README.md. The names are those of package election: heir.go, lease.go and
 * leader.go.
 *
 * Time is counted in ticks, as in strict.pml. A message arrives within DELAY, unless
 * LOSS is defined. A leader acts whenever it likes, so it may stand still for as long
 * as it likes; what it was sent waits meanwhile. A follower acts in time.
 */

#define BOARDS 3
#ifndef CLAIMS
#define CLAIMS 3		/* how many there are at most */
#endif

#ifndef DELAY
#define DELAY 1			/* the longest that a message is under way: SILENCE - LEASED, so 1/4 G */
#endif
#define SILENCE 4		/* H + G: nobody claims before so long after the last heartbeat was received */
#ifdef LEASE_AS_LONG_AS_SILENCE
#define LEASED SILENCE
#else
#define LEASED 3		/* H + 3/4 G, from before the heartbeat was sent */
#endif
#ifdef SHORT_LAPSE
#define ROUND_TRIP 0		/* it only reads what waits */
#else
#define ROUND_TRIP (2 * DELAY)	/* RoundTripBound */
#endif
#ifdef NO_TURNS
#define TURN_STEP 0
#else
#define TURN_STEP (2 * DELAY + 1)	/* turnStep */
#endif
#define DRIFT SILENCE		/* the clock of board 0 misses one tick in so many, and one more */

mtype:role = { Follower, Leader };

typedef Board {
	mtype:role role;
	byte term;
	byte silent;		/* a follower: since it received the last heartbeat, as far as it matters */
	byte lease;		/* a leader: what is left of it, from before the last heartbeat was sent */
	bit lapsed;		/* lapse.over is set: the lease had ended before that heartbeat */
	byte lapse;		/* what is left until lapse.over */
	byte fence;		/* the lease that the kernel knows: the address answers while it is not 0 */
	/* The newest message to this board that it has not read, of each sender; 0 is none. */
	byte mail[BOARDS];	/* the term of a HEARTBEAT or COORDINATOR */
	byte way[BOARDS];	/* for how much longer it may be under way */
};

Board board[BOARDS];
byte drift;

#define P(b) board[b]
#define others(b) (P((b + 1) % BOARDS).fence > 0 || P((b + 2) % BOARDS).fence > 0)
#define turn(b) (SILENCE + (b == 0 -> 2 : b - 1) * TURN_STEP)	/* board 1 is the heir, 0 has led */

/* A message to another board. One that waits already is replaced: the newer one says the same, and more. */
#define tell(b, to) \
	if \
	:: P(to).mail[b] == 0 -> P(to).way[b] = DELAY \
	:: else \
	fi; \
	P(to).mail[b] = P(b).term

/* A HEARTBEAT or COORDINATOR to all. */
#define proclaim(b) P(b).lease = LEASED; tell(b, ((b + 1) % BOARDS)); tell(b, ((b + 2) % BOARDS))

/* heir: board b reads what a has sent. */
#define reads(b, a) \
	:: d_step { a != b && P(b).mail[a] > 0 -> \
		if \
		:: P(b).mail[a] >= P(b).term && !(P(b).role == Leader && P(b).mail[a] == P(b).term) -> \
			P(b).term = P(b).mail[a]; \
			P(b).role = Follower; \
			P(b).fence = 0; P(b).lease = 0; P(b).lapsed = 0; P(b).lapse = 0; \
			P(b).silent = 0 \
		:: else	/* a leader of a lower term */ \
		fi; \
		P(b).mail[a] = 0; P(b).way[a] = 0 }

#define unread(b) (P(b).mail[0] > 0 && P(b).way[0] == 0 || P(b).mail[1] > 0 && P(b).way[1] == 0 || \
	P(b).mail[2] > 0 && P(b).way[2] == 0)
#define late(b) (P(b).role == Follower && (unread(b) || P(b).term < CLAIMS && P(b).silent >= turn(b)))

proctype heir(byte b)
{
	do
	reads(b, 0)
	reads(b, 1)
	reads(b, 2)
#ifdef LOSS
	:: d_step { P(b).mail[0] > 0 -> P(b).mail[0] = 0; P(b).way[0] = 0 }
#endif
	/* claim: it has heard nothing for so long, and those before it in the succession did not claim. */
#ifdef CLAIMS_WITHOUT_GRACE
	:: d_step { P(b).role == Follower && P(b).term < CLAIMS && P(b).silent >= turn(b) - 2 && !unread(b) ->
#else
	:: d_step { P(b).role == Follower && P(b).term < CLAIMS && P(b).silent >= turn(b) && !unread(b) ->
#endif
		P(b).term++;
		P(b).role = Leader;
		P(b).silent = 0;
		proclaim(b);
		P(b).fence = P(b).lease;
#ifdef SHOW_TAKEOVER
		assert(false);
#endif
		assert(!others(b)) }
	/* sendHeartbeat, checkLapse: as late as it likes. */
	:: d_step { P(b).role == Leader && P(b).lease < LEASED ->
#ifndef NO_LAPSE
		if
#ifdef LAPSE_NOT_RENEWED
		:: P(b).lease == 0 && !P(b).lapsed -> P(b).lapsed = 1; P(b).lapse = ROUND_TRIP
#else
		:: P(b).lease == 0 -> P(b).lapsed = 1; P(b).lapse = ROUND_TRIP
#endif
		:: else
		fi;
#endif
		proclaim(b) }
	/* lapse.over: a round trip later. What waits is read first, as readsFirst has it. */
	:: d_step { P(b).role == Leader && P(b).lapsed && P(b).lapse == 0 && !unread(b) -> P(b).lapsed = 0 }
	/* The owner tells the kernel until when the address may answer. */
	:: d_step { P(b).role == Leader && !P(b).lapsed && P(b).lease > P(b).fence ->
		P(b).fence = P(b).lease;
		assert(!others(b)) }
#ifdef NO_FENCE
	/* The process itself takes the address away, when it comes to that. */
	:: d_step { P(b).fence > 0 && P(b).lease == 0 -> P(b).fence = 0 }
#endif
	od
}

#define down(x) x = (x > 0 -> x - 1 : 0)
#ifdef NO_FENCE
#define downFence(b)
#else
#define downFence(b) down(P(b).fence);
#endif

#define rings(b) \
	down(P(b).lease); \
	down(P(b).lapse); \
	downFence(b) \
	if \
	:: P(b).role == Follower && P(b).silent < turn(b) -> P(b).silent++ \
	:: else \
	fi

#define arrives(b) down(P(b).way[0]); down(P(b).way[1]); down(P(b).way[2])

proctype clock()
{
	do
	:: d_step { !late(0) && !late(1) && !late(2) ->
		arrives(0); arrives(1); arrives(2);
		rings(0); rings(1); rings(2); down(drift) }
	:: d_step { drift == 0 && !late(0) && !late(1) && !late(2) ->
		arrives(0); arrives(1); arrives(2);
		rings(1); rings(2); drift = DRIFT }
	od
}

init {
	atomic {
		P(0).role = Leader; P(1).role = Follower; P(2).role = Follower;
		P(0).term = 1; P(1).term = 1; P(2).term = 1;
		run heir(0); run heir(1); run heir(2); run clock()
	}
}
