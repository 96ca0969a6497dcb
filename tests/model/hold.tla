\* SPDX-License-Identifier: BSL-1.0
------------------------------------------------ MODULE hold ------------------------------------------------
\* Acquire, renew and release of one lock on one server, which loses no data. Time passes in ticks.
\*
\* The network is as bad as possible. A command may run late, in any order, any number of times, or never; an answer
\* may come late or never. The clock of a laggard may lag behind the server's by one tick in any Ttl ticks.
\* A client that pauses does nothing for a while, so each of its steps is optional.
\*
\* So that the states are few, an answer that nobody waits for is not sent, and one that grants nothing is forgotten.
EXTENDS Integers, FiniteSets

CONSTANTS
  Clients,
  Laggards,      \* clients whose clock may lag
  Renewing,      \* clients that renew
  Mortals,       \* clients that may die
  Ttl,           \* ticks of the server until a key expires
  ShortTtl,      \* the TTL that some renewals ask for
  Drift,         \* ticks by which a validity ends earlier: at least the lag of a client's clock
  MostHolds,     \* holds that a client begins
  MostCommands   \* commands on their way at a time

VARIABLES
  key,       \* of the server: the owner field, and the ticks that are left
  hold,      \* of each client: the number of its newest hold, the stage, and what is left of the validity by its clock
  commands,  \* on their way to the server
  replies,   \* on their way to a client, one for each at most
  steady     \* of each client: the ticks until its clock may lag again

vars == <<key, hold, commands, replies, steady>>

Larger(x, y) == IF x > y THEN x ELSE y

free == [field |-> <<>>, left |-> 0]
\* The owner field of the newest hold. No client uses a number twice.
Field(c) == <<c, hold[c].number>>
Held(c) == hold[c].stage = "held" /\ hold[c].left > 0
Owns(c, field) == field # <<>> /\ field[1] = c

Init ==
  /\ key = free
  /\ hold = [c \in Clients |-> [number |-> 0, stage |-> "idle", left |-> 0]]
  /\ commands = {}
  /\ replies = {}
  /\ steady = [c \in Clients |-> 0]

----------------------------------------------------------------------------------------------------------------
\* The client.

\* `grants`: what is left of the validity that a yes gives, by the clock of the client. It counts from the send.
Send(script, field, ttl) ==
  /\ Cardinality(commands) < MostCommands
  /\ commands' = commands \cup {[script |-> script, field |-> field, ttl |-> ttl, grants |-> Larger(ttl - Drift, 0)]}

Becomes(c, stage, left) ==
  hold' = [hold EXCEPT ![c].stage = stage, ![c].left = left]

Begin(c) ==
  /\ hold[c].stage \in {"idle", "over"}
  /\ hold[c].number < MostHolds
  /\ hold' = [hold EXCEPT ![c] = [number |-> @.number + 1, stage |-> "asking", left |-> 0]]
  /\ Send("acquire", <<c, hold[c].number + 1>>, Ttl)
  /\ UNCHANGED <<key, replies, steady>>

\* An unanswered acquire is sent again under the same field. So is one that found the lock busy.
Repeat(c) ==
  /\ hold[c].stage = "asking"
  /\ Send("acquire", Field(c), Ttl)
  /\ UNCHANGED <<key, hold, replies, steady>>

Renew(c) ==
  /\ c \in Renewing
  /\ Held(c)
  /\ \E ttl \in {Ttl, ShortTtl} : Send("renew", Field(c), ttl)
  /\ UNCHANGED <<key, hold, replies, steady>>

\* An unlock, or a waiter that gives up its attempt.
Leave(c) ==
  /\ hold[c].stage \in {"asking", "held"}
  /\ Becomes(c, "over", 0)
  /\ Send("release", Field(c), 0)
  /\ UNCHANGED <<key, replies, steady>>

Die(c) ==
  /\ c \in Mortals
  /\ hold[c].stage # "dead"
  /\ Becomes(c, "dead", 0)
  /\ UNCHANGED <<key, commands, replies, steady>>

Receive(reply) ==
  LET c == reply.field[1]
  IN
  /\ replies' = replies \ {reply}
  /\ CASE reply.field # Field(c) -> UNCHANGED hold
       \* A grant that comes too late is of no use, and the attempt goes on.
       [] reply.script = "acquire" /\ hold[c].stage = "asking" /\ reply.grants > 0 ->
            Becomes(c, "held", reply.grants)
       [] reply.script = "renew" /\ hold[c].stage = "held" ->
            IF reply.yes THEN Becomes(c, "held", Larger(hold[c].left, reply.grants)) ELSE Becomes(c, "over", 0)
       [] OTHER -> UNCHANGED hold
  /\ UNCHANGED <<key, commands, steady>>

----------------------------------------------------------------------------------------------------------------
\* The server: the scripts of src/protocol/hash.

Awaited(m) ==
  /\ m.field = Field(m.field[1])
  /\ \/ m.script = "acquire" /\ hold[m.field[1]].stage = "asking"
     \/ m.script = "renew" /\ hold[m.field[1]].stage = "held"

Answer(m, yes) ==
  replies' = IF Awaited(m) /\ ~\E reply \in replies : reply.field[1] = m.field[1]
             THEN replies \cup
               {[script |-> m.script, field |-> m.field, yes |-> yes, grants |-> IF yes THEN m.grants ELSE 0]}
             ELSE replies

Acquire(m) ==
  /\ key' = IF key = free THEN [field |-> m.field, left |-> m.ttl]
            ELSE IF key.field = m.field THEN [key EXCEPT !.left = Larger(@, m.ttl)]
            ELSE key
  /\ IF key'.field = m.field THEN Answer(m, TRUE) ELSE UNCHANGED replies

Extend(m) ==
  /\ key' = IF key.field = m.field THEN [key EXCEPT !.left = Larger(@, m.ttl)] ELSE key
  /\ Answer(m, key.field = m.field)

Free(m) ==
  /\ key' = IF key.field = m.field THEN free ELSE key
  /\ UNCHANGED replies

\* The command stays: a copy of it may run later.
Serve(m) ==
  /\ CASE m.script = "acquire" -> Acquire(m)
       [] m.script = "renew" -> Extend(m)
       [] m.script = "release" -> Free(m)
  /\ UNCHANGED <<hold, commands, steady>>

----------------------------------------------------------------------------------------------------------------
\* The network and the clocks.

LoseCommand(m) == commands' = commands \ {m} /\ UNCHANGED <<key, hold, replies, steady>>
LoseReply(reply) == replies' = replies \ {reply} /\ UNCHANGED <<key, hold, commands, steady>>

\* `lagging`: the clients whose clock stands still in this tick.
Tick(lagging) ==
  LET Step(c) == IF c \in lagging THEN 0 ELSE 1
      Older(m) == [m EXCEPT !.grants = Larger(@ - Step(m.field[1]), 0)]
  IN
  /\ key' = IF key.left <= 1 THEN free ELSE [key EXCEPT !.left = @ - 1]
  /\ hold' = [c \in Clients |->
       LET left == Larger(hold[c].left - Step(c), 0)
       IN [hold[c] EXCEPT !.left = left, !.stage = IF @ = "held" /\ left = 0 THEN "over" ELSE @]]
  /\ commands' = {IF Awaited(m) THEN Older(m) ELSE [m EXCEPT !.grants = 0] : m \in commands}
  /\ replies' = {reply \in {Older(r) : r \in replies} : reply.grants > 0 \/ ~reply.yes}
  /\ steady' = [c \in Clients |-> IF c \in lagging THEN Ttl - 1 ELSE Larger(steady[c] - 1, 0)]

TimePasses == \E lagging \in SUBSET {c \in Laggards : steady[c] = 0} : Tick(lagging)

Next ==
  \/ \E c \in Clients : Begin(c) \/ Repeat(c) \/ Renew(c) \/ Leave(c) \/ Die(c)
  \/ \E m \in commands : Serve(m) \/ LoseCommand(m)
  \/ \E reply \in replies : Receive(reply) \/ LoseReply(reply)
  \/ TimePasses

\* Time goes on, and each command is lost at last.
Fairness ==
  /\ WF_vars(TimePasses)
  /\ \A c \in Clients : WF_vars(\E m \in commands : m.field[1] = c /\ LoseCommand(m))

Spec == Init /\ [][Next]_vars /\ Fairness

----------------------------------------------------------------------------------------------------------------
\* The promises.

exclusion == \A x, y \in Clients : Held(x) /\ Held(y) => x = y

validity_ends_before_the_key == \A c \in Clients : Held(c) => key.field = Field(c)

loss_is_final ==
  [][\A c \in Clients : hold[c].stage # "asking" /\ ~Held(c) /\ hold'[c].number = hold[c].number => ~Held(c)']_vars

only_the_owner_changes_a_hold ==
  [][\A m \in commands : Serve(m) /\ key # free /\ key.field # m.field => key' = key]_vars

no_renewal_shortens_a_ttl ==
  [][\A m \in commands : Serve(m) /\ m.script # "release" => key'.left >= key.left]_vars

\* While the server keeps its data, unanswered renewals cost nothing before the end of the validity.
short_outage_costs_no_lock == \A reply \in replies :
  reply.script = "renew" /\ ~reply.yes /\ reply.field = Field(reply.field[1]) => ~Held(reply.field[1])

lock_of_dead_holder_becomes_free ==
  \A c \in Clients : hold[c].stage = "dead" ~> [](~Owns(c, key.field))
==============================================================================================================
