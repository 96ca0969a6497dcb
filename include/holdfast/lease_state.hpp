// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

namespace holdfast {

/// State of a lease:
/// | state     | held()          | meaning; → next states                                                             |
/// |-----------|-----------------|------------------------------------------------------------------------------------|
/// | empty     | false           | default-made or moved-from                                                         |
/// | held      | true            | confirmed; → suspended, lost, released                                             |
/// | suspended | true            | not confirmed now (no answer, link down), yet exclusive; → held, lost, released    |
/// | lost      | false for good  | validity over, key gone or taken, client closed                                    |
/// | released  | false for good  | unlocked by its holder                                                             |
enum class lease_state : std::uint8_t { empty, held, suspended, lost, released };

}  // namespace holdfast
