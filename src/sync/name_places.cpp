// SPDX-License-Identifier: BSL-1.0
// The places of the waiters of a name, of a kind that serves all waiters of all clients in the order of their arrival.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/name.hpp"

namespace holdfast::detail {

// ---- the places

// A message while this client holds the lock: it was freed by force, or its key is gone.
void name::place_called(std::uint8_t place, std::string_view message) {
  if (is_copy(*keys_, message)) return;
  const visit here(*this);
  line_->places->rules.called(place);
  const bool held = barring_hold() != nullptr;
  act(line_->rules.called(conditions()));
  if (held) doubt_hold_here();
}

void name::places_shown(const answer<stand_answer>& answer) {
  const visit here(*this);
  auto* const first = line_->empty() ? nullptr : &line_->first();
  if (answer.failed) {
    if (!answer.failed->mends_itself() && line_->rules.listening())
      act(line_->rules.unsubscribed(*answer.failed, conditions()), first);
    return;
  }
  // The answer does not say whose turn it is. A place that was told in an earlier turn may have a new one.
  if (!line_->rules.awaits_turn()) line_->places->turn.clear();
  const auto ours = line_->places->rules.standing();
  const auto others = answer.value.standing - std::min(answer.value.standing, ours);
  act(line_->rules.shown(answer.value, others, conditions()), first);
}

void name::places_unheard(error_code error, const std::string& detail) {
  if (line_->rules.listening()) on_subscribe_failed(error, detail);
}

void name::places_due() { const visit here(*this); }

// Each visit ends here, so each change of the line is shown.
void name::tend_places() noexcept {
  auto& line = *line_;
  const auto keeper = line.places;
  if (keeper->rules.wanted().empty()) leave_places(*keeper);
  // Behind a try_lock() that is first others may stand, although it does not listen.
  if (line.rules.listening() || !keeper->rules.wanted().empty())
    keeper->show(line.rules.trying() && !line.empty() && !line.first().asks_once());
  else if (line.empty() && keeper->idle())
    line.places.reset();
}

// No waiter is left for which the places would be shown. A release goes on until it is answered, also after the end of
// the client. Without memory for it the places end by their deadlines.
void name::leave_places(place_keeper& keeper) noexcept {
  auto& rules = keeper.rules;
  if (!rules.may_stand() || rules.shows() || rules.leaves()) return;
  rules.leave();
  if (!if_memory([&] { host_.parts.freeing.leave_places(*this, keys_, keeper.any_place()); })) rules.released(false);
}

// ---- attempts

// Only a client that stands may suspect another one. Its own turn comes between two turns of a place, so a place that
// is told twice without that has not come.
call name::attempt_in_order(const acquisition& waiter) {
  static const std::string nobody;
  const auto* suspect = &nobody;
  if (line_->places) {
    auto& keeper = *line_->places;
    keeper.suspect = line_->rules.suspects() && keeper.rules.first_stands() ? keeper.turn : nobody;
    suspect = &keeper.suspect;
  }
  return keys_->of.places.acquire(*waiter.keys, waiter.request.asked.ttl, waiter.seat.tries.field, *suspect);
}

// Without memory the place is not suspected.
void name::note_turn(std::string_view turn) noexcept {
  if (!line_ || !line_->places) return;
  auto& known = line_->places->turn;
  if (!if_memory([&] { known = turn; })) known.clear();
}

// ---- releases

release_host::rider name::rides() {
  if (!line_) return {};
  const auto at = conditions();
  if (!line_->rules.may_ride(at)) return {};
  auto& first = line_->first();
  auto& field = first.seat.tries.field;
  if (field.empty()) field = host_.fields.next();
  line_->rules.rides(at);
  line_->alarm.stop();
  return {field, first.request.asked.ttl};
}

bool name::still_rides(const owner_field& next) const {
  return line_ && !line_->empty() && line_->rules.riding() && line_->first().seat.tries.field == next;
}

// The waiter may have left meanwhile. Its field was released then, but perhaps before the command ran: the topology
// may have repeated that.
void name::rode(const ride_end& end) {
  const visit here(*this);
  const auto& answer = end.answer;
  if (!still_rides(end.next)) {
    if (!answer || !answer->rides) return;
    // While its release is under way a waiter asks for nothing, and is passed nothing.
    HOLDFAST_ASSERT(std::ranges::none_of(holds_, [&](const hold& each) { return each.field() == end.next; }));
    if (line_ && line_->places) line_->places->rules.taken(answer->place);
    if_memory([&] { give_back(keys_, end.next, end.ttl, {}, everywhere); });
    return;
  }
  if (!answer || !answer->told) return act(line_->rules.rode_in_vain(conditions()));
  acquire_answer reply;
  if (answer->rides) {
    reply.place = answer->place;
  } else {
    reply.type = acquire_answer::kind::busy;
    reply.holder_ttl = milliseconds(0);
    reply.reserved = true;
    reply.turn = answer->turn;
  }
  on_attempt(line_->first(), {{{}, std::move(reply)}, true, end.sent, only(0), only(0), end.server, false});
}

void name::freed(const release_end& end) {
  if (!line_) return;
  if (end.of_places) {
    if (line_->places) line_->places->rules.released(end.unanswered);
    return act(line_->rules.places_left(conditions()));
  }
  if (!end.may_be_free || end.rode) return;
  using turn = line_rules::turn;
  auto whose = turn::unknown;
  if (end.turn) {
    const bool ours = end.turn->starts_with(host_.fields.client_uuid());
    whose = end.turn->empty() ? turn::nobody : ours ? turn::ours : turn::other;
    if (whose == turn::other) note_turn(*end.turn);
  }
  act(line_->rules.freed(whose, conditions()));
}

}  // namespace holdfast::detail
