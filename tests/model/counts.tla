\* SPDX-License-Identifier: BSL-1.0
------------------------------------------------ MODULE counts ------------------------------------------------
\* One owner enters its own lock again and again. Commands or their answers are lost, and commands are repeated.
\*
\* The server keeps the lock and its count. A client has one command about the count on its way at a time. A lost
\* connection is closed at the server before the next one is used, so a lost command has run before, or never runs.
EXTENDS Integers

CONSTANTS
  MostLeases,   \* of the owner at a time
  MostEntries,  \* in all
  MostFaults

VARIABLES
  stored,   \* of the server: how often the owner has the lock; 0: the lock is free
  leases,   \* of the owner
  stage,    \* "none", "acquiring", "held", "releasing" or "over"
  known,    \* the count by the last answer
  command,  \* on its way: "none", "sent", or "answered" if its answer is on its way
  count,    \* that the command carries
  entries, faults  \* that are still to come

vars == <<stored, leases, stage, known, command, count, entries, faults>>

Init ==
  /\ stored = 0 /\ leases = 0 /\ stage = "none" /\ known = 0
  /\ command = "none" /\ count = 0
  /\ entries = MostEntries /\ faults = MostFaults

Begin ==
  /\ stage = "none"
  /\ stage' = "acquiring" /\ command' = "sent" /\ count' = 1
  /\ UNCHANGED <<stored, leases, known, entries, faults>>

\* A re-entry is granted in the process. The server gets the count afterwards.
Enter ==
  /\ stage = "held" /\ leases < MostLeases /\ entries > 0
  /\ leases' = leases + 1 /\ entries' = entries - 1
  /\ UNCHANGED <<stored, stage, known, command, count, faults>>

Leave ==
  /\ stage = "held" /\ leases > 1
  /\ leases' = leases - 1
  /\ UNCHANGED <<stored, stage, known, command, count, entries, faults>>

\* The count is absolute, and the latest one.
SendCount ==
  /\ stage = "held" /\ command = "none" /\ known # leases
  /\ command' = "sent" /\ count' = leases
  /\ UNCHANGED <<stored, leases, stage, known, entries, faults>>

\* The last unlock does not wait for the answer about a count, which runs before the release or never.
LeaveLast ==
  /\ stage = "held" /\ leases = 1
  /\ leases' = 0 /\ stage' = "releasing"
  /\ command' = "sent" /\ count' = 0
  /\ UNCHANGED <<stored, known, entries, faults>>

Serve ==
  /\ command = "sent"
  /\ stored' = CASE stage = "acquiring" -> IF stored = 0 THEN 1 ELSE stored
                 [] stage = "held" -> count
                 [] stage = "releasing" -> 0
  /\ command' = "answered"
  /\ UNCHANGED <<leases, stage, known, count, entries, faults>>

Hear ==
  /\ command = "answered"
  /\ command' = "none"
  /\ known' = count
  /\ CASE stage = "acquiring" -> stage' = "held" /\ leases' = 1
       [] stage = "held" -> UNCHANGED <<stage, leases>>
       [] stage = "releasing" -> stage' = "over" /\ UNCHANGED leases
  /\ UNCHANGED <<stored, count, entries, faults>>

\* The connection is lost, and the command is sent again. It has run, or it has not.
Repeat ==
  /\ faults > 0 /\ faults' = faults - 1
  /\ command \in {"sent", "answered"}
  /\ command' = "sent"
  /\ UNCHANGED <<stored, leases, stage, known, count, entries>>

Next == Begin \/ Enter \/ Leave \/ SendCount \/ LeaveLast \/ Serve \/ Hear \/ Repeat
Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------------------------------------------
\* The promises.

\* Each answered command counts once, however often it was sent.
repeated_command_counts_once == stage = "held" /\ command = "none" => stored = known

\* Only the last unlock frees the lock.
only_the_last_unlock_frees == stage = "held" => stored > 0

last_unlock_frees == stage = "over" => stored = 0
==============================================================================================================
