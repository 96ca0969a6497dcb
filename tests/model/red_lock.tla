\* SPDX-License-Identifier: BSL-1.0
------------------------------------------------ MODULE red_lock ------------------------------------------------
\* A lock at a majority of independent servers, and the marker without which a server does not vote. A server may
\* restart empty, which ends its connections, or be emptied, which does not.
\*
\* A command and its answer are one step: hold.tla has late ones. The clock of a laggard may lag behind the servers' by
\* one tick in any Ttl ticks, and one that is hasty may run ahead by one.
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
  Clients,
  Laggards, Hasty,  \* clients
  Servers,
  Silent,      \* servers that never answer
  Faulty,      \* servers that may restart or be emptied
  Ttl,         \* of each lock, and the longest one
  Drift,
  MostFaults   \* restarts, and servers that are emptied

VARIABLES
  key,      \* of each server: the client that has its vote, and ticks left
  marker,   \* of each server: `vote` if it names the present run; 0 if not; else the nonce of a wait for the vote
  stage,    \* of each client: "asking", "held" or "over"
  share,    \* of each client and server: what is left of the validity that this server has confirmed
  wait,     \* of each client and server: the nonce of the wait that it knows, and ticks left by its clock
  steady,   \* of each client: the ticks until its clock may lag or run ahead again
  nonces,   \* so many were used
  faults    \* that are still to come

vars == <<key, marker, stage, share, wait, steady, nonces, faults>>
symmetry == Permutations(Faulty) \cup Permutations(Servers \ Faulty)

Larger(x, y) == IF x > y THEN x ELSE y
nobody == "nobody"
vote == -1
free == [holder |-> nobody, left |-> 0]
no_wait == [nonce |-> 0, left |-> 0]
Majority(servers) == 2 * Cardinality(servers) > Cardinality(Servers)
Valid(c) == {s \in Servers : share[c][s] > 0}
Held(c) == stage[c] = "held" /\ Majority(Valid(c))
nothing == [s \in Servers |-> 0]

Init ==
  /\ key = [s \in Servers |-> free] /\ marker = [s \in Servers |-> vote]
  /\ stage = [c \in Clients |-> "asking"]
  /\ share = [c \in Clients |-> nothing]
  /\ wait = [c \in Clients |-> [s \in Servers |-> no_wait]]
  /\ steady = [c \in Clients |-> 0]
  /\ nonces = 0 /\ faults = MostFaults

Has(s, c) == key' = [key EXCEPT ![s] = [holder |-> c, left |-> Ttl]]
Confirms(s, c, validity) == share' = [share EXCEPT ![c][s] = validity]
Ends(c) == stage' = [stage EXCEPT ![c] = "over"] /\ share' = [share EXCEPT ![c] = nothing]

----------------------------------------------------------------------------------------------------------------
\* The lock.

Acquire(c, s) ==
  /\ stage[c] = "asking"
  /\ marker[s] = vote
  /\ key[s].holder \in {nobody, c}
  /\ Has(s, c) /\ Confirms(s, c, Ttl - Drift)
  /\ UNCHANGED <<marker, stage, wait, steady, nonces, faults>>

Begin(c) ==
  /\ stage[c] = "asking" /\ Majority(Valid(c))
  /\ stage' = [stage EXCEPT ![c] = "held"]
  /\ UNCHANGED <<key, marker, share, wait, steady, nonces, faults>>

\* A renewal needs no vote. A server that has forgotten the lock denies its share.
Renew(c, s) ==
  /\ Held(c)
  /\ IF key[s].holder = c THEN Has(s, c) /\ Confirms(s, c, Ttl - Drift) /\ UNCHANGED stage
     ELSE IF Majority(Valid(c) \ {s}) THEN Confirms(s, c, 0) /\ UNCHANGED <<key, stage>>
     ELSE Ends(c) /\ UNCHANGED key
  /\ UNCHANGED <<marker, wait, steady, nonces, faults>>

\* An unlock, or a caller that gives up.
Leave(c) ==
  /\ stage[c] # "over"
  /\ Ends(c)
  /\ UNCHANGED <<key, marker, wait, steady, nonces, faults>>

Release(c, s) ==
  /\ stage[c] = "over" /\ key[s].holder = c
  /\ key' = [key EXCEPT ![s] = free]
  /\ UNCHANGED <<marker, stage, share, wait, steady, nonces, faults>>

----------------------------------------------------------------------------------------------------------------
\* The vote: src/sync/vote/voting.hpp.

\* A client writes a wait down, or learns of one that another client has begun. Both wait from now on, by their clocks.
Wait(c, s) ==
  /\ marker[s] # vote
  /\ IF marker[s] = 0 THEN nonces' = nonces + 1 /\ marker' = [marker EXCEPT ![s] = nonces + 1]
     ELSE UNCHANGED <<nonces, marker>>
  /\ wait[c][s].nonce # marker'[s]
  /\ wait' = [wait EXCEPT ![c][s] = [nonce |-> marker'[s], left |-> Ttl + Drift]]
  /\ UNCHANGED <<key, stage, share, steady, faults>>

\* The server votes again if nobody has touched the wait.
EndWait(c, s) ==
  /\ wait[c][s].nonce # 0 /\ wait[c][s].left = 0
  /\ marker' = [marker EXCEPT ![s] = IF @ = wait[c][s].nonce THEN vote ELSE @]
  /\ wait' = [wait EXCEPT ![c][s] = no_wait]
  /\ UNCHANGED <<key, stage, share, steady, nonces, faults>>

----------------------------------------------------------------------------------------------------------------
\* The faults and the clocks.

\* A marker that a snapshot brings back names another run.
Restart(s) ==
  /\ faults > 0 /\ faults' = faults - 1
  /\ key' = [key EXCEPT ![s] = free]
  /\ marker' = [marker EXCEPT ![s] = 0]
  /\ wait' = [c \in Clients |-> [wait[c] EXCEPT ![s] = no_wait]]
  /\ UNCHANGED <<stage, share, steady, nonces>>

Empty(s) ==
  /\ faults > 0 /\ faults' = faults - 1
  /\ key' = [key EXCEPT ![s] = free]
  /\ marker' = [marker EXCEPT ![s] = 0]
  /\ UNCHANGED <<stage, share, wait, steady, nonces>>

Tick(lagging, hasty) ==
  LET Step(c) == CASE c \in lagging -> 0 [] c \in hasty -> 2 [] OTHER -> 1
      left == [c \in Clients |-> [s \in Servers |-> Larger(share[c][s] - Step(c), 0)]]
      Over(c) == stage[c] = "held" /\ ~Majority({s \in Servers : left[c][s] > 0})
  IN
  /\ key' = [s \in Servers |-> IF key[s].left <= 1 THEN free ELSE [key[s] EXCEPT !.left = @ - 1]]
  /\ stage' = [c \in Clients |-> IF Over(c) THEN "over" ELSE stage[c]]
  /\ share' = [c \in Clients |-> IF Over(c) THEN nothing ELSE left[c]]
  /\ wait' = [c \in Clients |-> [s \in Servers |-> [wait[c][s] EXCEPT !.left = Larger(@ - Step(c), 0)]]]
  /\ steady' = [c \in Clients |-> IF c \in lagging \cup hasty THEN Ttl - 1 ELSE Larger(steady[c] - 1, 0)]
  /\ UNCHANGED <<marker, nonces, faults>>

Uneven(clients) == SUBSET {c \in clients : steady[c] = 0}
TimePasses == \E lagging \in Uneven(Laggards), hasty \in Uneven(Hasty) : Tick(lagging, hasty)

Steps ==
  \/ \E s \in Faulty : Restart(s) \/ Empty(s)
  \/ \E s \in Servers \ Silent, c \in Clients :
       Acquire(c, s) \/ Renew(c, s) \/ Release(c, s) \/ Wait(c, s) \/ EndWait(c, s)
  \/ \E c \in Clients : Begin(c) \/ Leave(c)

Next == Steps \/ TimePasses
Spec == Init /\ [][Next]_vars

\* Each server that is not silent answers within a tick.
Answered == \A c \in Clients, s \in Servers \ Silent :
  /\ stage[c] = "asking" => ~Majority(Valid(c)) /\ (share[c][s] > 0 \/ key[s].holder \notin {nobody, c})
  /\ stage[c] = "held" => share[c][s] = Ttl - Drift
PromptNext == Steps \/ (Answered /\ TimePasses)
PromptSpec == Init /\ [][PromptNext]_vars /\ \A c \in Clients :
  WF_vars(Begin(c)) /\ \A s \in Servers \ Silent : WF_vars(share[c][s] = 0 /\ Acquire(c, s))

----------------------------------------------------------------------------------------------------------------
\* The promises.

exclusion == \A x, y \in Clients : Held(x) /\ Held(y) => x = y

\* A server that votes has forgotten no share that is still valid.
voter_has_forgotten_nothing ==
  \A c \in Clients, s \in Servers : marker[s] = vote /\ share[c][s] > 0 => key[s].holder = c

\* While a minority is silent and the others answer.
caller_gets_the_lock == \A c \in Clients : stage[c] = "asking" ~> stage[c] # "asking"
silent_minority_costs_no_lock == [][\A c \in Clients : stage[c] = "held" /\ stage'[c] = "over" => Leave(c)]_vars
================================================================================================================
