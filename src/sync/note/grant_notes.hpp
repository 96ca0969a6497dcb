// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>

#include "base/shared_text.hpp"
#include "sync/claim/claim.hpp"
#include "sync/command/environment.hpp"

namespace holdfast::detail {

/// Keeps a note for people beside each lock that this client holds: when the hold began, and its purpose. A semaphore
/// has no note, because it has several holders. Made only with config::notes. A client without it has a null pointer.
///
/// It promises:
/// - a note is written at each grant and at each pass, and again when a renewal prolongs the lock;
/// - a claim has one write under way at a time, and the next write has the newest text;
/// - no caller waits for a write, and a refused or lost write changes nothing else;
/// - after a hold has ended, no write is sent for it.
///
/// Decision: a write has the whole note. So the next renewal replaces a lost write, and corrects the order of two
/// clients' writes. A release writes nothing: the note names its owner field. Readers ignore a note whose field does
/// not have the lock.
///
/// Decision: a hold that follows by a pass keeps the field of its claim. Until its own note is written, a round trip
/// later, readers see the note of the hold before it. Where only SET is refused, the write deletes that note. A lost
/// write is due again at the next confirmation, which follows a new connection.
class grant_notes final {
 public:
  explicit grant_notes(environment& env) noexcept : env_(env) {}
  grant_notes(const grant_notes&) = delete;
  grant_notes& operator=(const grant_notes&) = delete;

  /// The claim got a new holder at `since`, by a grant or a pass.
  void granted(claim& held, const shared_text_ptr& words, time_point since) noexcept;
  /// The claim was confirmed, and its key may live longer now.
  void confirmed(claim& held) noexcept;
  /// The holder has ended.
  void ended(const claim& held) noexcept;

 private:
  struct note {
    shared_text_ptr words;
    time_point since{};
    time_point lives_until{};  // the key's end by the last write; zero: none was sent for this holder
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
