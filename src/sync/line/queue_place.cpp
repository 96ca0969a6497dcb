// SPDX-License-Identifier: BSL-1.0
#include "sync/line/queue_place.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::detail {
namespace {

queue_place::duration pause_of(queue_place::duration reserve, random_source& random) {
  return reserve + reserve / 2 + random.up_to(reserve / 2);
}

}  // namespace

// A try_lock() stands nowhere. A client that does not listen would not hear that its turn has come.
standing queue_place::sends(bool may_stand) noexcept {
  if (!may_stand) return standing::none;
  place_.stands = true;
  return std::exchange(place_.called, false) ? standing::front : standing::last;
}

void queue_place::took(duration round_trip) noexcept {
  reserve_ = std::clamp<duration>(reserved_round_trips * round_trip, least_reserve, longest_reserve);
}

// A reader is let in with all readers that wait, so each message may concern it. A writer behind others is called.
queue_place::heed queue_place::heard(message heard, bool writes) noexcept {
  if (heard.news == message::other_called) {
    place_.rank -= std::min(place_.rank, heard.left);
    return writes && place_.rank > 0 ? heed::never : heed::later;
  }
  if (!writes || !place_.stands) return heed::now;
  if (place_.rank > 0) return heed::never;
  return heard.news == message::read_ended ? heed::now : heed::later;
}

// The release calls the next client of the queue, perhaps this one. Only a write that put the client there again may
// have found nobody to call.
queue_place::heed queue_place::released(std::uint64_t others) noexcept {
  const bool again = std::exchange(place_.again, false);
  if (!place_.stands) return heed::now;
  if (!again) return heed::never;
  return others == 0 ? heed::now : heed::later;
}

milliseconds queue_place::reserve() const noexcept { return std::chrono::ceil<milliseconds>(reserve_); }

queue_place::duration queue_place::pause(random_source& random) const { return pause_of(reserve_, random); }

queue_place::duration queue_place::patience(random_source& random) { return pause_of(longest_reserve, random); }

}  // namespace holdfast::detail
