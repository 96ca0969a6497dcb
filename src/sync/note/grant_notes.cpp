// SPDX-License-Identifier: BSL-1.0
#include "sync/note/grant_notes.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "protocol/note/note.hpp"
#include "sync/command/send_once.hpp"

namespace holdfast::detail {

// The steps of a note, between two calls:
//
//   step     wanted  under_way  what moves it on
//   written  yes     no         granted(), or confirmed() if the key lives longer now → writing; ended() → forgotten
//   writing  yes     yes        the answer → written, or → writing if a write is due again; ended() → ending
//   ending   no      yes        the answer → forgotten; granted() by a pass → writing

// Nobody waits for a note, so each of these functions does without one if there is no memory.
void grant_notes::granted(claim& held, const shared_text_ptr& words, time_point since) noexcept {
  if (!held.keys->of.bars) return;  // a name has one note, and holds of this kind stand side by side
  if_memory([&] {
    auto& kept = notes_[&held];
    kept.words = words;
    kept.since = since;
    kept.lives_until = {};
    kept.wanted = true;
    write_if_due(held, kept);
  });
}

void grant_notes::confirmed(claim& held) noexcept {
  const auto found = notes_.find(&held);
  if (found != notes_.end() && found->second.wanted) if_memory([&] { write_if_due(held, found->second); });
}

void grant_notes::ended(const claim& held) noexcept {
  const auto found = notes_.find(&held);
  if (found == notes_.end()) return;
  found->second.wanted = false;
  if (!found->second.under_way) notes_.erase(found);
}

void grant_notes::write_if_due(claim& held, note& kept) {
  // One write at a time: two could arrive in the wrong order, and the older one would stay.
  if (kept.under_way) return;
  const auto now = env_.now();
  const auto ttl = std::clamp<milliseconds>(held.may_live(now, env_.settings.drift), milliseconds(1), longest_ttl);
  // Each share of several primaries is confirmed by itself, and one write serves all of them. So a write is due only
  // when the key has won a good part of its TTL.
  if (now + ttl < kept.lives_until + ttl / 10) return;
  const auto age = std::chrono::duration_cast<milliseconds>(now - kept.since);
  const auto text = std::make_shared<const std::string>(text_of_note(age, held.field, text_of(kept.words)));
  // The call refers to the text and to the keys of the claim until it is answered.
  auto answered = [this, keep = claim_ptr(&held), text](const outcome& outcome) { on_answer(*keep, outcome); };
  send_once(env_, write_note(*held.keys, ttl, *text),
            {.timeout = command_budget(env_.settings, milliseconds(held.wanted.ttl))}, std::move(answered));
  // Set afterwards: without memory nothing was sent, and no answer would clear the flag.
  kept.under_way = true;
  kept.lives_until = now + ttl;
}

// A failed write is not repeated at once, or a refusal would be repeated without end. The next renewal makes the key
// live longer, so a write is due then. After a lost write the older note may be there, so any confirmation is followed
// by a write.
void grant_notes::on_answer(claim& held, const outcome& outcome) noexcept {
  report_refusal(outcome);
  const auto found = notes_.find(&held);
  HOLDFAST_ASSERT(found != notes_.end());
  auto& kept = found->second;
  kept.under_way = false;
  if (!kept.wanted) return static_cast<void>(notes_.erase(found));
  if_memory([&] { write_if_due(held, kept); });
  if (outcome.error && !kept.under_way) kept.lives_until = {};
}

// Once per client, like a withheld message: the missing permission concerns every note.
void grant_notes::report_refusal(const outcome& outcome) noexcept {
  if_memory([&] {
    const auto why = refusal_in(outcome);
    if (redis::error_of(why) != errc::no_permission || std::exchange(reported_, true)) return;
    env_.report({.kind = event_kind::notes_degraded, .reason = why->code, .detail = why->detail});
  });
}

}  // namespace holdfast::detail
