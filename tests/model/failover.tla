\* SPDX-License-Identifier: BSL-1.0
------------------------------------------------ MODULE failover ------------------------------------------------
\* A primary with one replica. The replica copies it later, and is promoted once. The old primary may live on, and
\* serves each client that has not followed the failover.
\*
\* A command and its answer are one step here, and clocks agree: hold.tla has late commands and lagging clocks.
EXTENDS Integers

CONSTANTS
  Clients,
  MinReplicas,  \* replicas that must have a grant: 0 or 1
  Ttl,
  MostGrants

VARIABLES
  old, new,   \* the first primary and its replica: the client that has the lock, ticks left, the newest fencing token
  promoted,   \* the replica is the primary
  at,         \* of each client: the server that it talks to
  stage,      \* of each client: "none", "granted" while replicas are waited for, or "held"
  left,       \* of each client: what is left of its validity
  clock,      \* of both servers, in units of tokens
  newest      \* the token of the newest grant

vars == <<old, new, promoted, at, stage, left, clock, newest>>

nobody == "nobody"
Larger(x, y) == IF x > y THEN x ELSE y
Smaller(x, y) == IF x < y THEN x ELSE y
Held(c) == stage[c] = "held" /\ left[c] > 0
Server(c) == IF at[c] = "old" THEN old ELSE new
\* The new primary has no replica that can be elected.
WaitsForReplica(c) == MinReplicas > 0 /\ at[c] = "old"

Init ==
  /\ old = [holder |-> nobody, left |-> 0, token |-> 0] /\ new = old
  /\ promoted = FALSE
  /\ at = [c \in Clients |-> "old"]
  /\ stage = [c \in Clients |-> "none"] /\ left = [c \in Clients |-> 0]
  /\ clock = 1 /\ newest = 0

Writes(c, server) ==
  IF at[c] = "old" THEN old' = server /\ UNCHANGED new ELSE new' = server /\ UNCHANGED old
Becomes(c, next, validity) == stage' = [stage EXCEPT ![c] = next] /\ left' = [left EXCEPT ![c] = validity]

----------------------------------------------------------------------------------------------------------------
\* The servers.

Replicate ==
  /\ ~promoted
  /\ new' = old
  /\ UNCHANGED <<old, promoted, at, stage, left, clock, newest>>

Promote ==
  /\ ~promoted /\ promoted' = TRUE
  /\ UNCHANGED <<old, new, at, stage, left, clock, newest>>

----------------------------------------------------------------------------------------------------------------
\* The clients.

Acquire(c) ==
  LET server == Server(c)
      token == Larger(server.token + 1, clock)
  IN
  /\ stage[c] = "none" /\ server.holder = nobody /\ clock <= MostGrants
  /\ Writes(c, [holder |-> c, left |-> Ttl, token |-> token])
  /\ Becomes(c, IF WaitsForReplica(c) THEN "granted" ELSE "held", Ttl)
  /\ clock' = clock + 1 /\ newest' = token
  /\ UNCHANGED <<promoted, at>>

\* The replica has this very grant. A promoted replica acknowledges nothing to the old primary.
HearReplica(c) ==
  /\ stage[c] = "granted" /\ left[c] > 0 /\ at[c] = "old"
  /\ ~promoted /\ new.holder = c /\ new.token = old.token
  /\ Becomes(c, "held", left[c])
  /\ UNCHANGED <<old, new, promoted, at, clock, newest>>

\* A confirmation prolongs the validity only to what the replica has, if it must have it.
Renew(c) ==
  /\ Held(c)
  /\ IF Server(c).holder # c THEN Becomes(c, "none", 0) /\ UNCHANGED <<old, new>>
     ELSE /\ Writes(c, [Server(c) EXCEPT !.left = Ttl])
          /\ Becomes(c, "held", IF WaitsForReplica(c) THEN left[c] ELSE Ttl)
  /\ UNCHANGED <<promoted, at, clock, newest>>

HearReplicaOfRenewal(c) ==
  /\ Held(c) /\ at[c] = "old" /\ MinReplicas > 0
  /\ ~promoted /\ new.holder = c /\ new.token = old.token
  /\ Becomes(c, "held", Larger(left[c], Smaller(new.left, old.left)))
  /\ UNCHANGED <<old, new, promoted, at, clock, newest>>

\* An unlock, or a grant that too few replicas have.
Release(c) ==
  /\ stage[c] # "none"
  /\ IF Server(c).holder = c THEN Writes(c, [Server(c) EXCEPT !.holder = nobody, !.left = 0])
     ELSE UNCHANGED <<old, new>>
  /\ Becomes(c, "none", 0)
  /\ UNCHANGED <<promoted, at, clock, newest>>

\* The client learns of the failover, and asks the new primary about its lease at once.
Follow(c) ==
  /\ promoted /\ at[c] = "old"
  /\ at' = [at EXCEPT ![c] = "new"]
  /\ IF Held(c) /\ new.holder = c THEN new' = [new EXCEPT !.left = Ttl] /\ Becomes(c, "held", Ttl)
     ELSE Becomes(c, "none", 0) /\ UNCHANGED new
  /\ UNCHANGED <<old, promoted, clock, newest>>

Older(server) ==
  IF server.left <= 1 THEN [server EXCEPT !.holder = nobody, !.left = 0] ELSE [server EXCEPT !.left = @ - 1]

Tick ==
  /\ old' = Older(old) /\ new' = Older(new)
  /\ left' = [c \in Clients |-> Larger(left[c] - 1, 0)]
  /\ stage' = [c \in Clients |-> IF left[c] <= 1 THEN "none" ELSE stage[c]]
  /\ UNCHANGED <<promoted, at, clock, newest>>

Next ==
  \/ Replicate \/ Promote \/ Tick
  \/ \E c \in Clients :
       Acquire(c) \/ HearReplica(c) \/ Renew(c) \/ HearReplicaOfRenewal(c) \/ Release(c) \/ Follow(c)

Fairness == WF_vars(Tick) /\ \A c \in Clients : WF_vars(Follow(c))
Spec == Init /\ [][Next]_vars /\ Fairness

----------------------------------------------------------------------------------------------------------------
\* The promises.

\* With MinReplicas = 1, the number of all replicas that can be elected.
exclusion == \A x, y \in Clients : Held(x) /\ Held(y) => x = y

\* With MinReplicas = 0: two holders only until the one that was forgotten has followed the failover.
two_holders_only_until_both_followed ==
  \A x, y \in Clients : Held(x) /\ Held(y) /\ x # y => promoted /\ (at[x] = "old" \/ at[y] = "old")

holder_that_was_forgotten_learns_of_it ==
  \A c \in Clients : promoted /\ Held(c) /\ new.holder # c ~> ~Held(c)

\* Also if the replica lacks the newest token.
tokens_grow == [][newest' # newest => newest' > newest]_vars
==============================================================================================================
