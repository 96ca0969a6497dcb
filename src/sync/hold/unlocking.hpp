// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sync/command/handlers.hpp"

// Room hold has two halves. A hold says who has a name, by how many leases, until when, and how that ends against its
// owner's wish. This half ends it by its owner's wish: an unlock that is not the last changes the count alone; the last
// one passes the claim on, or releases it. It stands above the hold, which knows nothing of it but the unlocks that
// wait: those must end with the hold.
//
// One release answers every last unlock. Re-entries that ask Redis run one after the other, so the last unlock may have
// to wait for its turn. Before that a re-entry may be granted and unlocked again, which makes one more last unlock. The
// first one that has its turn while there is no lease frees the hold. All others that wait get the answer of that
// release, each within its own time. If the re-entry's lease is still open, the earlier unlock was not the last after
// all, and succeeds at its turn.
//
//   state of the hold            | unlock, leases left | unlock, none left         | turn of a waiting unlock | loss
//   -----------------------------+---------------------+---------------------------+--------------------------+------
//   held: has leases             | count told: held    | no change: released       | succeeds: held           | lost
//                                |                     | a change runs: unlocking  |                          |
//   unlocking: none, and waits   | not possible [1]    | not possible [1]          | released                 | lost
//   released, or passed on        | not possible        | not possible              | answered already [2]     | no [3]
//   lost: leases may be left     | answered: the loss  | the same, and forgotten   | answered: the loss       | no [3]
//   client closed                | answered: closed    | the same, and lost        | answered by close()      | lost
//
//   [1] A re-entry that is granted brings the hold back to held.
//   [2] The release that was begun has taken all that waited.
//   [3] Released and lost are final. A loss that the release finds out is an event, and its caller's answer.

namespace holdfast::detail {

struct lease_record;

/// Takes the lease back from its hold. `done` hears of it as lease::unlock() promises; empty: no caller waits for it.
void give_up(lease_record& lease, done_handler&& done);

}  // namespace holdfast::detail
