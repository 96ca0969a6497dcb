// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sync/command/handlers.hpp"

// Room hold has two halves. hold.hpp has the owner of a name, its leases and its validity, and ends a hold that is
// lost. This half ends a hold by the wish of its owner. The last unlock passes the claim on or releases it. Every other
// unlock changes the count alone. Of this half the hold knows only the unlocks that wait, because they end with it.
//
// Decision: one release answers every last unlock. Re-entries that ask Redis run one after the other, so the last
// unlock may have to wait for its turn. Before that turn a re-entry may be granted and unlocked again: one more last
// unlock. The first one whose turn comes while there is no lease frees the hold. All others that wait get the answer of
// that release, each within its own budget. If the lease of the re-entry is still open, the earlier unlock was not the
// last. It succeeds at its turn.
//
//   state of the hold            | unlock, leases left | unlock, none left         | turn of a waiting unlock | loss
//   -----------------------------+---------------------+---------------------------+--------------------------+------
//   held: has leases             | count sent: held    | no change: released       | succeeds: held           | lost
//                                |                     | a change runs: unlocking  |                          |
//   unlocking: none, and waits   | not possible [1]    | not possible [1]          | released                 | lost
//   released, or passed on       | not possible        | not possible              | answered already [2]     | no [3]
//   lost: leases may be left     | answered: the loss  | the same, and forgotten   | answered: the loss       | no [3]
//   client closed                | answered: closed    | the same, and lost        | answered by close()      | lost
//
//   [1] A re-entry that is granted brings the hold back to held.
//   [2] The release that was begun has taken all that waited.
//   [3] Released and lost are final. A loss that the release finds is an event, and the answer of its caller.
//
// Two things turn a release into a loss at the unlock: the validity is over, or there is no memory for the release.

namespace holdfast::detail {

struct lease_record;

/// Takes the lease back from its hold. `done` is called as lease::unlock() promises. Empty: no caller waits.
void give_up(lease_record& lease, done_handler&& done);

}  // namespace holdfast::detail
