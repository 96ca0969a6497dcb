\* SPDX-License-Identifier: BSL-1.0
------------------------------------------------ MODULE waiting ------------------------------------------------
\* Callers of several clients wait for one lock. A release publishes a message. A client may pass its lock from one
\* caller to the next, and sends nothing then.
\*
\* There is no clock here: hold.tla has the TTLs. The key of a client that does not guard it expires at some time, and
\* a parked caller polls at some time. A fault loses a command, an answer, a message or a subscription.
EXTENDS Integers

CONSTANTS
  Clients,
  Mortals,     \* clients that may die
  MostCalls,   \* of all clients together
  MostFaults,
  MostForced   \* force-unlocks

VARIABLES
  key,         \* of the server: the client that has the lock
  subscribed,  \* of the server: the clients that get a message
  message,     \* the clients to which a message is on its way
  stage,       \* of each client: "none", "held", "releasing" or "dead"
  doubt,       \* the clients that have heard of a release while they held
  line,        \* of each client: "idle", "asking", "granted", "busy", "subscribing" or "parked"
  waiting,     \* of each client: the number of callers that wait
  woken,       \* the clients that have heard of a release during an attempt
  calls, faults, forced  \* those that are still to come

server == <<key, subscribed, message>>
budget == <<calls, faults, forced>>
vars == <<server, stage, doubt, line, waiting, woken, budget>>

nobody == "nobody"
Alive(c) == stage[c] # "dead"

Init ==
  /\ key = nobody /\ subscribed = {} /\ message = {}
  /\ stage = [c \in Clients |-> "none"] /\ doubt = {}
  /\ line = [c \in Clients |-> "idle"]
  /\ waiting = [c \in Clients |-> 0] /\ woken = {}
  /\ calls = MostCalls /\ faults = MostFaults /\ forced = MostForced

Goes(c, step) == line' = [line EXCEPT ![c] = step]
Becomes(c, next) == stage' = [stage EXCEPT ![c] = next]

----------------------------------------------------------------------------------------------------------------
\* The line of a client: only its first caller talks to the server.

Call(c) ==
  /\ Alive(c) /\ calls > 0
  /\ calls' = calls - 1
  /\ waiting' = [waiting EXCEPT ![c] = @ + 1]
  /\ UNCHANGED <<server, stage, doubt, line, woken, faults, forced>>

\* A caller is cancelled. The answer to its attempt still comes.
Cancel(c) ==
  /\ waiting[c] > 0
  /\ waiting' = [waiting EXCEPT ![c] = @ - 1]
  /\ IF waiting[c] = 1 /\ line[c] \in {"parked", "subscribing"}
     THEN /\ Goes(c, "idle")
          /\ subscribed' = subscribed \ {c} /\ message' = message \ {c}
     ELSE UNCHANGED <<line, subscribed, message>>
  /\ UNCHANGED <<key, stage, doubt, woken, budget>>

Ask(c) ==
  /\ stage[c] = "none" /\ waiting[c] > 0 /\ line[c] = "idle"
  /\ Goes(c, "asking")
  /\ woken' = woken \ {c}
  /\ UNCHANGED <<server, stage, doubt, waiting, budget>>

HearGranted(c) ==
  /\ Alive(c) /\ line[c] = "granted"
  /\ Goes(c, "idle")
  \* Nobody wants the lock any more: it is given back.
  /\ IF waiting[c] = 0 THEN Becomes(c, "releasing") /\ UNCHANGED waiting
     ELSE Becomes(c, "held") /\ waiting' = [waiting EXCEPT ![c] = @ - 1]
  /\ UNCHANGED <<server, doubt, woken, budget>>

HearBusy(c) ==
  /\ Alive(c) /\ line[c] = "busy"
  \* The attempt may have run before the release of the message.
  /\ Goes(c, IF waiting[c] = 0 \/ c \in woken THEN "idle" ELSE IF c \in subscribed THEN "parked" ELSE "subscribing")
  /\ UNCHANGED <<server, stage, doubt, waiting, woken, budget>>

\* A release between the first attempt and the subscription has sent no message to this client.
HearSubscribed(c) ==
  /\ Alive(c) /\ line[c] = "subscribing"
  /\ subscribed' = subscribed \cup {c}
  /\ Goes(c, "idle")
  /\ UNCHANGED <<key, message, stage, doubt, waiting, woken, budget>>

HearMessage(c) ==
  /\ Alive(c) /\ c \in message
  /\ message' = message \ {c}
  /\ doubt' = IF stage[c] = "held" THEN doubt \cup {c} ELSE doubt
  /\ IF line[c] = "parked" THEN Goes(c, "idle") ELSE UNCHANGED line
  /\ woken' = IF line[c] \in {"asking", "granted", "busy"} THEN woken \cup {c} ELSE woken
  /\ UNCHANGED <<key, subscribed, stage, waiting, budget>>

Poll(c) ==
  /\ Alive(c) /\ line[c] = "parked"
  /\ Goes(c, "idle")
  /\ UNCHANGED <<server, stage, doubt, waiting, woken, budget>>

----------------------------------------------------------------------------------------------------------------
\* The holder.

Renew(c) ==
  /\ stage[c] = "held"
  /\ key # c \/ c \in doubt
  /\ IF key = c THEN UNCHANGED stage ELSE Becomes(c, "none")
  /\ doubt' = doubt \ {c}
  /\ UNCHANGED <<server, line, waiting, woken, budget>>

\* The claim goes from a caller that unlocks to the next one.
Pass(c) ==
  /\ stage[c] = "held" /\ waiting[c] > 0 /\ c \notin doubt
  /\ waiting' = [waiting EXCEPT ![c] = @ - 1]
  /\ UNCHANGED <<server, stage, doubt, line, woken, budget>>

Unlock(c) ==
  /\ stage[c] = "held"
  /\ Becomes(c, "releasing")
  /\ doubt' = doubt \ {c}
  /\ UNCHANGED <<server, line, waiting, woken, budget>>

----------------------------------------------------------------------------------------------------------------
\* The server.

ServeAcquire(c) ==
  /\ line[c] = "asking"
  /\ key' = IF key = nobody THEN c ELSE key
  /\ Goes(c, IF key' = c THEN "granted" ELSE "busy")
  /\ UNCHANGED <<subscribed, message, stage, doubt, waiting, woken, budget>>

\* The client repeats a release whose answer is lost.
ServeRelease(c) ==
  /\ stage[c] = "releasing"
  /\ IF key = c THEN key' = nobody /\ message' = message \cup subscribed ELSE UNCHANGED <<key, message>>
  /\ \/ Becomes(c, "none") /\ UNCHANGED faults
     \/ faults > 0 /\ faults' = faults - 1 /\ UNCHANGED stage
  /\ UNCHANGED <<subscribed, doubt, line, waiting, woken, calls, forced>>

ForceRelease ==
  /\ forced > 0 /\ forced' = forced - 1
  /\ key # nobody
  /\ key' = nobody /\ message' = message \cup subscribed
  /\ UNCHANGED <<subscribed, stage, doubt, line, waiting, woken, calls, faults>>

\* The TTL of a key that its client does not renew, and whose grant is not on its way.
Expire(c) ==
  /\ key = c
  /\ stage[c] \in {"none", "dead"} /\ (line[c] # "granted" \/ stage[c] = "dead")
  /\ key' = nobody
  /\ UNCHANGED <<subscribed, message, stage, doubt, line, waiting, woken, budget>>

----------------------------------------------------------------------------------------------------------------
\* The faults.

Lose(c) ==
  /\ faults > 0 /\ faults' = faults - 1
  /\ Alive(c)
  /\ \/ /\ line[c] \in {"asking", "granted", "busy"}
        /\ Goes(c, "idle")
        /\ UNCHANGED <<subscribed, message>>
     \/ /\ c \in message
        /\ message' = message \ {c}
        /\ UNCHANGED <<subscribed, line>>
     \/ /\ c \in subscribed
        /\ subscribed' = subscribed \ {c} /\ message' = message \ {c}
        /\ IF line[c] = "parked" THEN Goes(c, "subscribing") ELSE UNCHANGED line
  /\ UNCHANGED <<key, stage, doubt, waiting, woken, calls, forced>>

\* A command on its way may still run.
Die(c) ==
  /\ c \in Mortals /\ Alive(c)
  /\ Becomes(c, "dead")
  /\ waiting' = [waiting EXCEPT ![c] = 0]
  /\ subscribed' = subscribed \ {c} /\ message' = message \ {c}
  /\ doubt' = doubt \ {c} /\ woken' = woken \ {c}
  /\ UNCHANGED <<key, line, budget>>

\* Only these steps are sure to happen: time passes, and what is not lost arrives.
Sure(c) ==
  \/ Ask(c) \/ HearGranted(c) \/ HearBusy(c) \/ HearSubscribed(c) \/ Poll(c)
  \/ ServeAcquire(c)

Next ==
  \/ \E c \in Clients :
       \/ Call(c) \/ Cancel(c) \/ Sure(c) \/ HearMessage(c)
       \/ Renew(c) \/ Pass(c) \/ Unlock(c) \/ ServeRelease(c) \/ Expire(c) \/ Lose(c) \/ Die(c)
  \/ ForceRelease

Fairness == \A c \in Clients :
  /\ WF_vars(Sure(c)) /\ WF_vars(HearMessage(c)) /\ WF_vars(Renew(c))
  /\ WF_vars(Unlock(c)) /\ WF_vars(ServeRelease(c)) /\ WF_vars(Expire(c))

Spec == Init /\ [][Next]_vars /\ Fairness

----------------------------------------------------------------------------------------------------------------
\* The promises.

\* Without a force-unlock.
exclusion == \A x, y \in Clients : forced = MostForced /\ stage[x] = "held" /\ stage[y] = "held" => x = y

\* No claim that is known to be broken goes to a caller. Without faults. One message is not heeded: a message of a
\* force-unlock that overtakes the answer of the grant. The next renewal finds that out.
no_broken_claim_is_passed ==
  [][\A c \in Clients : Pass(c) /\ key # c => c \in message \/ c \notin subscribed \/ c \in woken]_vars

\* A parked caller of a free lock has a message on its way. Without faults.
no_release_is_missed ==
  \A c \in Clients : line[c] = "parked" /\ stage[c] = "none" /\ key = nobody => c \in message

every_waiter_gets_in == \A c \in Clients : waiting[c] > 0 ~> waiting[c] = 0
==============================================================================================================
