// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>

#include "base/shared_text.hpp"
#include "sync/claim/claim.hpp"
#include "sync/command/environment.hpp"

namespace holdfast::detail {

/// Keeps a note beside each lock that this client holds, for people: since when, and what for. A semaphore has none: it
/// has several holders. Made only with config::notes, so a client without it pays for a null pointer alone.
///
/// It promises:
/// - a note is written at each grant and at each pass, and again when a renewal prolongs the lock;
/// - one write of a claim is under way at a time, and the next one is the latest;
/// - no caller waits for a write, and a write that is refused or lost changes nothing else;
/// - after the end of a hold nothing is written for it.
///
/// Decision: a write has the whole note. So the next renewal makes up for a lost one, and the order of two clients'
/// writes does not matter for long. A release writes nothing: the note names its owner field. Readers ignore a note
/// whose field does not have the lock.
///
/// Decision: a hold that follows by a pass keeps the field of its claim. Until its own note is written, a round trip
/// later, readers see the note of the hold before it.
class grant_notes final {
 public:
  explicit grant_notes(environment& env) noexcept : env_(env) {}
  grant_notes(const grant_notes&) = delete;
  grant_notes& operator=(const grant_notes&) = delete;

  /// The claim has a new holder since then, by a grant or a pass.
  void granted(claim& held, const shared_text_ptr& words, time_point since) noexcept;
  /// The claim was confirmed, and its key may live longer now.
  void confirmed(claim& held) noexcept;
  /// The holder has ended.
  void ended(const claim& held) noexcept;

 private:
  struct note {
    shared_text_ptr words;
    time_point since{};
    time_point lives_until{};  // by the last write that was sent; zero: none was sent for this holder
    bool under_way = false;
    bool wanted = false;  // false: the holder has ended, and an answer is still to come
  };
  // No hash table: one insertion would sometimes pay for rehashing all notes.
  using notes = std::map<const claim*, note>;

  void write_if_due(claim& held, note& kept);
  void on_answer(claim& held, const outcome& outcome) noexcept;
  void report_refusal(const outcome& outcome) noexcept;

  environment& env_;
  notes notes_;
  bool reported_ = false;
};

}  // namespace holdfast::detail
