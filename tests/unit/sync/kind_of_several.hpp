// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <span>

#include "protocol/kind.hpp"

namespace holdfast::test {

/// A row that lets one client have several holds of a name, with the scripts of a plain lock. The test plays a server
/// that grants them several times. A party has one waiter.
inline detail::kind kind_of_several() {
  auto of = detail::plain_lock;
  of.name = "several";
  of.nested = detail::kind::nesting::anew;
  of.bars = false;
  of.looks = std::chrono::milliseconds(500);
  of.acquire_party = {
      [](const detail::lock_keys& keys, std::chrono::milliseconds ttl, std::span<const detail::owner_field> party,
         bool) { return detail::plain_lock.acquire.make(keys, ttl, party.front()); },
      [](const redis::outcome& outcome, std::size_t) { return detail::plain_lock.acquire.read(outcome); }};
  return of;
}

}  // namespace holdfast::test
