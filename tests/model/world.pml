/* The re-formation protocol: rank 0's supervisor, a member and a device host per rank, messages that
 * keep their order between a pair and nothing else. Device hosts and standbys die whenever they
 * like, LOSSES times in all; deaths are noticed late, by others perhaps earlier; collectives with a
 * dead peer fail or hang; work that was given up may be answered all the same; a standby world may
 * be raised PREPARES times; and a phase may be taken for too long, SPURIOUS times, though everyone
 * is at work. GONE times a device that died does not come back: the world goes on without its rank,
 * a spectator; REJOINS times such a device is there again. DEATHS times the process of a rank dies, each
 * rank's once at most, and another one takes its place, which knows nothing; if it is the one that leads,
 * another rank leads from then on.
 *
 * Checked in every reachable state:
 *   - nobody gives up its communicator before all ranks have halted in this round, and nobody's
 *     device host is killed before all have quiesced (all members of the world that is to come)
 *   - a communicator is formed by replaced hosts only, verified when all have formed it, and
 *     nobody restores before all have verified
 *   - no two ranks accept collectives in different epochs
 *   - no deadlock, and when nothing happens any more every rank is active in the same epoch, each
 *     member on a live device host with a communicator of this round, and no spectator accepts
 *     collectives. Runs do come to that: each round begins
 *     with a fault or a deadline, and rounds are asserted to be few, so no state comes twice.
 *
 * The supervisor's transitions are those of src/rank/protocol/transitions.def, the file that
 * supervisor.cpp includes. A leader that takes over begins a round above all others here; how it finds its
 * number, and who leads, the tests of Leadership look at. What is left out: the tree (answers come one by one here), commits, and
 * everything that is not control flow; the simulator has them. Each -DBROKEN_... breaks one rule:
 * the tests expect spin to find out.
 */
#ifndef N
#define N 3
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef SPURIOUS
#define SPURIOUS 0
#endif
#ifndef PREPARES
#define PREPARES 0
#endif
#ifndef GONE
#define GONE 0
#endif
#ifndef REJOINS
#define REJOINS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#define MOST_ROUNDS (1 + 2 * LOSSES + SPURIOUS + GONE + REJOINS + 4 * DEATHS)

/* Phases, numbered as recovery.def lists them: check.sh writes phases.h from it. */
#define active 0
#include "phases.h"

mtype = { all_done, all_promoted, fault, deadline, members };    /* events */
mtype = { order, promote, prepare, activate };                   /* down */
mtype = { done, death, echo, prepared, standby_lost, failed, rejoin, joined }; /* up */

/* Kind; phase, epoch or formation; round; downwards the spectators, a bit per rank. */
chan down[N] = [4] of { mtype, byte, byte, byte };
chan up[N] = [7] of { mtype, byte, byte };

/* The supervisor. */
byte phase = active;
byte round = 0;
byte epoch = 0;
byte answered = 0; /* a bit per rank */
bool promoting = false;
byte formation = 0;
byte standbys = 0; /* a bit per rank whose standby has formed it; ALL: there is a standby world */
bool raising = false;
byte without = 0;   /* the spectators of the world that is, or is being formed */
byte rejoining = 0; /* those that are to be members again */

byte goners = GONE;
byte rejoins = REJOINS;
byte losses = LOSSES;
byte spurious = SPURIOUS;
byte prepares = PREPARES;
byte deaths = DEATHS;
byte leader = 0;
bool died[N];   /* its process, which is another one by now */
bool absent[N]; /* the same, and the leader has not heard of it */

/* Per rank: what the member knows, and its device host. */
byte member_phase[N] = replace;
byte member_round[N] = 1;
byte member_epoch[N];
byte reached[N] = quiesce; /* the last phase carried out in member_round; at first all are quiet */
bool accepting[N];
bool connected[N];  /* to the communicator of member_round */
bool alive[N] = true;
bool detected[N];   /* its death */
bool working[N];    /* at the order of member_phase and member_round */
byte late_round[N]; /* of work that was given up and is yet to be answered; 0: none */
byte standby_of[N]; /* the formation that its standby belongs to; 0: none */
bool gone[N];       /* given up */
byte out[N];        /* the spectators, as its newest order says */

#define ALL ((1 << N) - 1)
#if N == 3
#define EVERY(x) (x(0) && x(1) && x(2))
#else
#define EVERY(x) (x(0) && x(1) && x(2) && x(3))
#endif
/* Of ranks that i must not count on; then of i itself. */
#define IS_OUT(j) ((out[i] >> j) & 1)
#define I_AM_OUT ((out[i] >> i) & 1)
#define IS_ALIVE(j) (IS_OUT(j) || alive[j])
#define SAME_ROUND(j) (member_round[j] == member_round[i])
/* One that is in a later round already has been through it. Of a process that is no more nothing is left. */
#define HAS_DIED(j) (died[j] && member_round[j] == 0)
#define HAS_REACHED(j, what) \
  (IS_OUT(j) || HAS_DIED(j) || member_round[j] > member_round[i] || (SAME_ROUND(j) && reached[j] >= what))
#define HAS_HALTED(j) HAS_REACHED(j, halt)
#define HAS_QUIESCED(j) HAS_REACHED(j, quiesce)
#define IS_REPLACED(j) HAS_REACHED(j, replace)
#define HAS_FORMED(j) HAS_REACHED(j, form)
#define HAS_VERIFIED(j) HAS_REACHED(j, verify)
#define TAKES_PART(j)                                \
  (IS_OUT(j) || (SAME_ROUND(j) && member_phase[j] >= form && \
                 (working[j] || reached[j] >= form)))
#define IS_CONNECTED(j) (IS_OUT(j) || (SAME_ROUND(j) && connected[j]))
#define SAME_EPOCH(j) (!accepting[j] || member_epoch[j] == member_epoch[i])
#define IS_SETTLED(j)                                                                    \
  (member_phase[j] == active && member_epoch[j] == epoch &&                              \
   (((without >> j) & 1) -> !accepting[j] : (alive[j] && accepting[j] && connected[j])))
/* Nothing is under way that would come to an end by itself. */
#define IS_QUIET(j)                                                              \
  (empty(up[j]) && empty(down[j]) && (alive[j] || detected[j]) && !working[j] && \
   late_round[j] == 0)

inline broadcast(what, argument) {
  for (to : 0 .. N - 1) {
    if
    :: !absent[to] -> down[to]!what, argument, round, without
    :: else -> skip /* it is for a process that is no more */
    fi
  }
  to = 0
}

inline begin_round() {
  round++;
  assert(round <= MOST_ROUNDS);
  raising = false;
  broadcast(order, phase)
}

/* Those that rejoin are members from the next epoch on; the standby world was made without them. */
inline admit() {
  without = without & ~rejoining;
  rejoining = 0;
  standbys = 0
}

/* What supervisor.cpp does on an event: next(), begin_round(), enter(), activate(). */
inline take() {
  next = phase;
  if
  :: event == members -> next = halt /* in any phase: they change */
#define TROUPE_TRANSITION(from, on_event, into) :: phase == from && event == on_event -> next = into;
#include "transitions.def"
  :: else -> skip
  fi;
#ifdef BROKEN_SKIP_VERIFY
  if
  :: next == verify -> next = restore
  :: else -> skip
  fi;
#endif
#ifdef BROKEN_DEAF
  if
  :: phase == restore && next == halt -> next = phase
  :: else -> skip
  fi;
#endif
  if
  :: next == phase && event != members -> assert(event != deadline) /* it would end the world */
  :: next != phase || event == members ->
     phase = next;
     answered = 0;
     if
     :: phase == active ->
        epoch++;
        standbys = 0;
        broadcast(activate, epoch);
        if
        :: rejoining != 0 -> admit(); phase = halt; begin_round()
        :: else -> skip
        fi
     :: phase == halt -> begin_round()
     :: phase == replace && standbys == ALL ->
        promoting = true;
        standbys = 0;
        broadcast(promote, formation)
     :: phase == replace && standbys != ALL ->
        promoting = false;
        standbys = 0;
        broadcast(order, phase)
     :: else -> broadcast(order, phase)
     fi
  fi;
  next = 0
}

#define IS_EXCLUDED ((without >> from) & 1)

/* What a message from rank `from` means: the event, or none. */
inline heard() {
  if
  :: kind == done ->
     if
     :: about_round == round && about == phase -> answered = answered | (1 << from)
     :: else -> skip /* of an older round */
     fi;
     if
#ifdef BROKEN_KILL_EARLY
     :: phase == quiesce && answered != 0 -> event = all_done
#endif
#ifdef BROKEN_ABORT_EARLY
     :: phase == halt && answered != 0 -> event = all_done
#endif
     :: phase == replace && promoting && answered == ALL -> event = all_promoted
     :: phase != active && !(phase == replace && promoting) && answered == ALL -> event = all_done
     :: else -> skip
     fi
  :: kind == death ->
     if
     :: !IS_EXCLUDED -> event = fault
     :: else -> skip
     fi
  :: kind == echo ->
     if
     :: about_round == round && !IS_EXCLUDED -> event = fault
     :: else -> skip
     fi
  :: kind == failed ->
     if
#ifdef BROKEN_NO_ROUND
     :: !IS_EXCLUDED && phase != active -> without = without | (1 << from); answered = answered | (1 << from)
     :: !IS_EXCLUDED && phase == active -> without = without | (1 << from); standbys = 0; event = members
#else
     :: !IS_EXCLUDED -> without = without | (1 << from); standbys = 0; event = members
#endif
     :: else -> skip
     fi
  :: kind == rejoin ->
     if
     :: IS_EXCLUDED -> rejoining = rejoining | (1 << from)
     :: else -> skip
     fi;
     if
     :: rejoining != 0 && phase == active -> admit(); event = members
     :: else -> skip
     fi
  :: kind == prepared ->
     if
     :: raising && about == formation -> standbys = standbys | (1 << from)
     :: else -> skip
     fi
  :: kind == standby_lost -> standbys = 0; raising = false
  :: kind == joined ->
     absent[from] = false;
     without = without & ~(1 << from);
     rejoining = rejoining & ~(1 << from);
     standbys = 0;
#ifndef BROKEN_NOBODY_TOLD
     event = members
#endif
  fi;
  kind = 0; about = 0; about_round = 0; from = 0
}

/* What waits in the channel is lost. */
#define EMPTY_DOWN(j) do :: down[j]?_, _, _, _ :: empty(down[j]) -> break od
#define EMPTY_UP(j) do :: up[j]?_, _, _ :: empty(up[j]) -> break od

/* The process of a rank, and its device host, are others from now on. */
inline die(j) {
  deaths--;
  died[j] = true;
  absent[j] = true;
#ifndef BROKEN_OLD_ORDERS
  EMPTY_DOWN(j);
#endif
  if
  :: EMPTY_UP(j) /* its last words have not been sent */
  :: true
  fi;
  member_phase[j] = replace;
  member_round[j] = 0;
  member_epoch[j] = 0;
  reached[j] = active;
  accepting[j] = false;
  connected[j] = false;
  alive[j] = true;
  detected[j] = false;
  working[j] = false;
  late_round[j] = 0;
  standby_of[j] = 0;
  gone[j] = false;
  out[j] = 0;
  up[j]!joined, 0, 0
}

/* What others have told the one that led is lost with it. */
inline lose_leader() {
  die(leader);
  for (to : 0 .. N - 1) {
    if
    :: to != leader ->
       EMPTY_UP(to);
       if
       :: absent[to] -> up[to]!joined, 0, 0 /* which it has told all */
       :: else -> skip
       fi
    :: else -> skip
    fi
  }
  to = 0;
  leader = (!HAS_DIED(0) -> 0 : (!HAS_DIED(1) -> 1 : 2));
  phase = halt;
  answered = 0;
  promoting = false;
  standbys = 0;
  rejoining = 0;
  without = out[leader];
  epoch++;
  begin_round()
}

proctype supervisor() {
  mtype kind, event;
  byte about, about_round, from, next, to;
  atomic {
    phase = replace;
    round = 1;
    broadcast(order, replace)
  }
  do
  :: atomic {
       if
       :: up[0]?kind, about, about_round -> from = 0; heard()
       :: up[1]?kind, about, about_round -> from = 1; heard()
       :: up[2]?kind, about, about_round -> from = 2; heard()
#if N > 3
       :: up[3]?kind, about, about_round -> from = 3; heard()
#endif
#if SPURIOUS > 0
       :: spurious > 0 && phase > quiesce -> spurious--; event = deadline
#endif
       :: EVERY(IS_QUIET) && phase != active -> event = deadline
       :: EVERY(IS_QUIET) && phase == active -> assert(EVERY(IS_SETTLED))
       fi;
       if
       :: event != 0 -> take()
       :: else -> skip
       fi;
       event = 0
     }
#if DEATHS > 0
  :: atomic { deaths > 0 && !died[leader] -> lose_leader() }
  :: atomic { deaths > 0 && leader != 1 && !died[1] -> die(1) }
  :: atomic { deaths > 0 && leader != 2 && !died[2] -> die(2) }
#endif
#if PREPARES > 0
  :: atomic {
       phase == active && prepares > 0 && standbys == 0 ->
       prepares--;
       formation++;
       raising = true;
       broadcast(prepare, formation)
     }
#endif
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

/* What member.cpp does with an order. What was under way is given up, but may be answered all the
 * same. What a live device host can do alone is done at once, which is no restriction: the answer
 * may be on its way for long, and a death in between is one before the order came. */
inline begin(new_phase) {
  if
  :: working[i] && about_round != member_round[i] -> late_round[i] = member_round[i]
  :: true
  fi;
  if
  :: about_round != member_round[i] -> reached[i] = active; connected[i] = false
  :: else -> skip
  fi;
  member_phase[i] = new_phase;
  member_round[i] = about_round;
  out[i] = now_out;
  working[i] = true
}

/* A spectator answers every order at once; so, in its way, does a rank whose device is given up. */
inline carry_out_nothing() {
  if
  :: I_AM_OUT ->
     accepting[i] = false;
     connected[i] = false;
     finished()
  :: else -> working[i] = false; say(failed)
  fi
}

inline carry_out_as_member() {
  if
#ifdef BROKEN_STAYS_OPEN
  :: about == halt -> skip
#else
  :: about == halt -> accepting[i] = false
#endif
  :: about == quiesce -> assert(EVERY(HAS_HALTED))
  :: about == form -> assert(EVERY(IS_REPLACED))
  :: about == verify -> assert(EVERY(HAS_FORMED))
  :: about == restore -> assert(EVERY(HAS_VERIFIED))
  :: else -> skip
  fi;
  if
  :: alive[i] && about != form && about != verify -> finished()
  :: else -> skip
  fi
}

inline carry_out() {
  begin(about);
  if
  :: I_AM_OUT || gone[i] -> carry_out_nothing()
  :: else -> carry_out_as_member()
  fi
}

/* The old device host ends, healthy or not; the standby takes its place and has a communicator. */
inline carry_out_promotion() {
  begin(replace);
  if
  :: I_AM_OUT || gone[i] -> carry_out_nothing()
#ifdef BROKEN_STANDBY
  :: true ->
     connected[i] = standby_of[i] == about;
     alive[i] = true;
     detected[i] = false;
     finished()
#endif
  :: !I_AM_OUT && !gone[i] && standby_of[i] == about ->
     assert(EVERY(HAS_QUIESCED));
     alive[i] = true;
     detected[i] = false;
     connected[i] = true;
     finished();
     reached[i] = form
  :: else -> working[i] = false; say(echo)
  fi;
  standby_of[i] = 0
}

inline receive() {
  if
  :: kind == activate && about_round == member_round[i] ->
     member_phase[i] = active;
     member_epoch[i] = about;
     accepting[i] = !I_AM_OUT;
     assert(EVERY(SAME_EPOCH))
  :: kind == order && about_round >= member_round[i] -> carry_out()
  :: kind == promote && about_round >= member_round[i] -> carry_out_promotion()
  :: kind == prepare && about_round == member_round[i] && member_phase[i] == active ->
     if
     :: !I_AM_OUT -> standby_of[i] = about
     :: else -> skip
     fi;
     up[i]!prepared, about, about_round
  :: else -> skip /* of an older round */
  fi;
  kind = 0; about = 0; about_round = 0; now_out = 0
}

proctype rank(byte i) {
  mtype kind;
  byte about, about_round, now_out;
end:
  do
  :: atomic { down[i]?kind, about, about_round, now_out -> receive() }

  /* A dead device host has nothing to stop; it is reaped, and another put in its place. */
  :: atomic {
       working[i] && (member_phase[i] == halt || member_phase[i] == quiesce) && detected[i] ->
       finished()
     }
  :: atomic {
       working[i] && member_phase[i] == replace && detected[i] ->
       if
       :: true ->
          assert(EVERY(HAS_QUIESCED));
          alive[i] = true;
          detected[i] = false;
          finished()
#if GONE > 0
       :: goners > 0 -> goners--; gone[i] = true; working[i] = false; say(failed)
#endif
       fi
     }
#if GONE > 0
  /* Known as gone at once; or given up long ago, and there again. */
  :: atomic {
       detected[i] && !gone[i] && !I_AM_OUT && goners > 0 && member_phase[i] != replace ->
       goners--;
       gone[i] = true;
       working[i] = false;
       say(failed)
     }
  :: atomic {
       gone[i] && I_AM_OUT && member_phase[i] == active && rejoins > 0 ->
       rejoins--;
       gone[i] = false;
       alive[i] = true;
       detected[i] = false;
       say(rejoin)
     }
#endif
  :: atomic {
       working[i] && member_phase[i] == form && EVERY(IS_ALIVE) && EVERY(TAKES_PART) ->
       connected[i] = true;
       finished()
     }
  :: atomic {
       working[i] && member_phase[i] == verify && EVERY(IS_ALIVE) && EVERY(IS_CONNECTED) ->
       finished()
     }

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
#ifdef BROKEN_LATE
       :: working[i] -> finished()
#else
       :: late_round[i] == member_round[i] && working[i] -> finished()
#endif
       :: else -> skip
       fi;
       late_round[i] = 0
     }

  :: atomic {
       !alive[i] && !detected[i] ->
       detected[i] = true;
       connected[i] = false;
       if
       :: working[i] && member_phase[i] == replace -> skip /* raised once more: no-one's business */
       :: I_AM_OUT -> skip /* nobody counts on it */
       :: else -> say(death); working[i] = working[i] && member_phase[i] <= quiesce
       fi
     }
  od
}

inline strike(i) {
  losses--;
  if
  :: alive[i] -> alive[i] = false
#if PREPARES > 0
  :: standby_of[i] != 0 -> standby_of[i] = 0; up[i]!standby_lost, 0, 0
#endif
  fi
}

proctype fate() {
end:
  do
  :: atomic { losses > 0 && (alive[0] || standby_of[0] != 0) -> strike(0) }
  :: atomic { losses > 0 && (alive[1] || standby_of[1] != 0) -> strike(1) }
  :: atomic { losses > 0 && (alive[2] || standby_of[2] != 0) -> strike(2) }
#if N > 3
  :: atomic { losses > 0 && (alive[3] || standby_of[3] != 0) -> strike(3) }
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
