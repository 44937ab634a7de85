/* The re-formation protocol: rank 0's supervisor, a member and a device host per rank, messages that
 * keep their order between a pair and nothing else. Device hosts die whenever they like, LOSSES
 * times in all; deaths are noticed late, by others perhaps earlier; work that was given up may be
 * answered all the same, and a phase may be taken for too long (SPURIOUS times) though everyone is
 * at work.
 *
 * Checked in every reachable state:
 *   - nobody's device host is killed before all ranks have quiesced in this round
 *   - a communicator is formed by replaced hosts only, verified when all have formed it, and
 *     nobody restores before all have verified
 *   - no two ranks accept collectives in different epochs
 *   - whatever happened, the run ends with every rank active in the same epoch on a live device host
 *     with a communicator of that epoch (`settled`). Runs do end: each round begins with a fault or
 *     a deadline, and rounds are asserted to be few, so no state comes twice.
 *
 * The supervisor's transitions are those of src/rank/world/transitions.def, the file that
 * supervisor.cpp includes. What is left out: the tree (answers come one by one here), commits, and
 * everything that is not control flow. Each -DBROKEN_... breaks one rule; the tests expect spin to
 * find out.
 */
#ifndef N
#define N 3
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef SPURIOUS
#define SPURIOUS 1
#endif
#define MOST_ROUNDS (1 + 2 * (LOSSES + SPURIOUS))

/* Phases and events, by the names that transitions.def uses. */
#define active 0
#define quiesce 1
#define replace 2
#define form 3
#define verify 4
#define restore 5

mtype = { all_done, fault, deadline }; /* events */
mtype = { order, activate };           /* down */
mtype = { done, death, echo };         /* up */

chan down[N] = [4] of { mtype, byte, byte };  /* kind, phase, round */
chan up[N] = [6] of { mtype, byte, byte };

/* The supervisor. */
byte phase = active;
byte round = 0;
byte epoch = 0;
byte answered = 0; /* a bit per rank */
byte losses = LOSSES;
byte spurious = SPURIOUS;

/* Per rank: what the member knows, and its device host. */
byte member_phase[N] = replace;
byte member_round[N] = 1;
byte member_epoch[N];
byte reached[N] = quiesce; /* the last phase carried out in member_round; at first there is nothing to quiesce */
bool accepting[N];
bool connected[N];  /* to the communicator of member_round */
bool alive[N] = true;
bool detected[N];   /* its death */
bool working[N];    /* at the order of member_phase and member_round */
byte late_round[N]; /* of work that was given up and is yet to be answered; 0: none */

#define ALL ((1 << N) - 1)
#if N == 3
#define EVERY(x) (x(0) && x(1) && x(2))
#else
#define EVERY(x) (x(0) && x(1) && x(2) && x(3))
#endif
#define IS_ALIVE(j) alive[j]
#define SAME_ROUND(j) (member_round[j] == member_round[i])
/* One that is in a later round already has been through it. */
#define HAS_REACHED(j, what) \
  (member_round[j] > member_round[i] || (SAME_ROUND(j) && reached[j] >= what))
#define HAS_QUIESCED(j) HAS_REACHED(j, quiesce)
#define IS_REPLACED(j) HAS_REACHED(j, replace)
#define HAS_FORMED(j) HAS_REACHED(j, form)
#define HAS_VERIFIED(j) HAS_REACHED(j, verify)
#define TAKES_PART(j) (SAME_ROUND(j) && member_phase[j] >= form && (working[j] || reached[j] >= form))
#define IS_CONNECTED(j) (SAME_ROUND(j) && connected[j])
#define SAME_EPOCH(j) (!accepting[j] || member_epoch[j] == member_epoch[i])
#define IS_SETTLED(j)                                                                   \
  (alive[j] && accepting[j] && connected[j] && member_phase[j] == active && member_epoch[j] == epoch)
#define CAN_FORM(i) (EVERY(IS_ALIVE) && EVERY(TAKES_PART))
#define CAN_VERIFY(i) (EVERY(IS_ALIVE) && EVERY(IS_CONNECTED))
/* Nothing is under way that would come to an end by itself. */
#define IS_QUIET(j) \
  (empty(up[j]) && empty(down[j]) && (alive[j] || detected[j]) && !working[j] && !late_round[j])

inline broadcast(what, argument) {
  for (to : 0 .. N - 1) {
    down[to]!what, argument, round
  }
  to = 0
}

/* What supervisor.cpp does in advance(), fault() and tick(). */
inline take(event) {
  next = phase;
  if
#define TROUPE_TRANSITION(from, on_event, into) :: phase == from && event == on_event -> next = into;
#include "transitions.def"
  :: else -> skip
  fi;
  if
  :: next == phase -> assert(event != deadline) /* it would end the world */
  :: next != phase ->
     if
     :: next == quiesce -> round++; assert(round <= MOST_ROUNDS)
     :: else -> skip
     fi;
     phase = next;
     answered = 0;
     if
     :: phase == active -> epoch++; broadcast(activate, epoch)
     :: else -> broadcast(order, phase)
     fi
  fi;
  next = 0
}

inline heard(i) {
  if
  :: kind == done ->
     if
     :: about_round == round && about == phase -> answered = answered | (1 << i)
     :: else -> skip /* of an older round, or twice */
     fi;
     if
     :: phase != active && answered == ALL -> take(all_done)
     :: else -> skip
     fi
  :: kind == death -> take(fault)
  :: kind == echo ->
     if
     :: about_round == round -> take(fault)
     :: else -> skip
     fi
  fi;
  kind = 0; about = 0; about_round = 0
}

proctype supervisor() {
  mtype kind;
  byte about, about_round, next, to;
  atomic {
    phase = replace;
    round = 1;
    broadcast(order, replace)
  }
  do
  :: atomic { up[0]?kind, about, about_round -> heard(0) }
  :: atomic { up[1]?kind, about, about_round -> heard(1) }
  :: atomic { up[2]?kind, about, about_round -> heard(2) }
#if N > 3
  :: atomic { up[3]?kind, about, about_round -> heard(3) }
#endif
  :: atomic { spurious > 0 && phase != active && phase != quiesce -> spurious--; take(deadline) }
  :: atomic { EVERY(IS_QUIET) && phase != active -> take(deadline) }
  :: atomic { EVERY(IS_QUIET) && phase == active -> assert(EVERY(IS_SETTLED)) }
  od
}

inline say(what) {
  up[i]!what, member_phase[i], member_round[i]
}

inline finished() {
  working[i] = false;
  reached[i] = member_phase[i];
  say(done)
}

/* A new order while one is at work: the old one is given up, but may be answered all the same. */
inline receive() {
  if
  :: kind == activate && about_round == member_round[i] ->
     member_phase[i] = active;
     member_epoch[i] = about;
     accepting[i] = true;
     assert(EVERY(SAME_EPOCH))
  :: kind == activate && about_round != member_round[i] -> skip
  :: kind == order && about_round < member_round[i] -> skip
  :: kind == order && about_round >= member_round[i] ->
     if
     :: working[i] && about_round != member_round[i] -> late_round[i] = member_round[i]
     :: true
     fi;
     if
     :: about_round != member_round[i] -> reached[i] = active; connected[i] = false
     :: else -> skip
     fi;
     member_phase[i] = about;
     member_round[i] = about_round;
     working[i] = true;
     if
     :: about == quiesce -> accepting[i] = false
     :: about == form -> assert(EVERY(IS_REPLACED))
     :: about == verify -> assert(EVERY(HAS_FORMED))
     :: about == restore -> assert(EVERY(HAS_VERIFIED))
     :: else -> skip
     fi;
     /* At once, which is no restriction: the answer may be on its way for long, and a death in
      * between is one before the order came. */
     if
     :: alive[i] && (about == quiesce || about == replace || about == restore) -> finished()
     :: else -> skip
     fi
  fi;
  kind = 0; about = 0; about_round = 0
}

proctype rank(byte i) {
  mtype kind;
  byte about, about_round;
end:
  do
  :: atomic { down[i]?kind, about, about_round -> receive() }

  /* A dead device host has nothing to quiesce; it is killed and reaped, and the standby promoted. */
  :: atomic { working[i] && member_phase[i] == quiesce && detected[i] -> finished() }
  :: atomic {
       working[i] && member_phase[i] == replace && detected[i] ->
       assert(EVERY(HAS_QUIESCED));
       alive[i] = true;
       detected[i] = false;
       finished()
     }
  :: atomic {
       working[i] && member_phase[i] == form && CAN_FORM(i) ->
       connected[i] = true;
       finished()
     }
  :: atomic { working[i] && member_phase[i] == verify && CAN_VERIFY(i) -> finished() }

  /* With a peer gone, forming and verifying fail; or hang, until the deadline. */
  :: atomic {
       working[i] && (member_phase[i] == form || member_phase[i] == verify) && alive[i] &&
       !EVERY(IS_ALIVE) ->
       working[i] = false;
       if
       :: say(echo)
       :: true
       fi
     }
  /* A peer's death shows in the communicator too. */
  :: atomic { connected[i] && alive[i] && !EVERY(IS_ALIVE) -> connected[i] = false; say(echo) }

  :: atomic {
       late_round[i] != 0 ->
       if
       :: late_round[i] == member_round[i] && working[i] -> finished()
       :: else -> skip
       fi;
       late_round[i] = 0
     }

  :: atomic {
       !alive[i] && !detected[i] ->
       detected[i] = true;
       connected[i] = false;
       if
       :: working[i] && member_phase[i] == replace -> skip /* raised once more: nobody else's business */
       :: else -> say(death)
       fi
     }
  od
}

proctype fate() {
end:
  do
  :: atomic { losses > 0 && alive[0] -> losses--; alive[0] = false }
  :: atomic { losses > 0 && alive[1] -> losses--; alive[1] = false }
  :: atomic { losses > 0 && alive[2] -> losses--; alive[2] = false }
#if N > 3
  :: atomic { losses > 0 && alive[3] -> losses--; alive[3] = false }
#endif
  od
}

init {
  atomic {
    byte i;
    for (i : 0 .. N - 1) {
      run rank(i)
    }
    run supervisor();
    run fate()
  }
}
