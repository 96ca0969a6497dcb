// SPDX-License-Identifier: BSL-1.0
#include "sync/inquiry/questions.hpp"

#include <memory>
#include <vector>

#include "base/if_memory.hpp"
#include "protocol/election/election_lock.hpp"
#include "protocol/note/note.hpp"
#include "protocol/shared/shared_lock.hpp"
#include "sync/command/send_once.hpp"

namespace holdfast::detail {
namespace {

/// The two answers to one holder(). They come in any order, and the caller gets both together.
class noted_holder {
 public:
  using answered_holder = answer<std::optional<lock_holder>>;

  explicit noted_holder(answer_handler<std::optional<lock_holder>> done) : done_(std::move(done)) {}

  void named(answered_holder&& named) {
    named_ = std::move(named);
    finish();
  }
  /// A note that cannot be read is left out.
  void noted(const outcome& note) {
    // A copy of the texts: the outcomes of several primaries end with this call.
    if_memory([&] { texts_ = texts_in(note); });
    answered_ = true;
    finish();
  }

 private:
  void finish() {
    if (!named_ || !answered_) return;
    if (auto& holder = named_->value)
      if (const auto note = note_of(holder->id, texts_)) {
        holder->since = note->since;
        holder->note = note->words;
      }
    done_(std::move(*named_));
  }

  const answer_handler<std::optional<lock_holder>> done_;
  std::optional<answered_holder> named_;
  std::vector<std::string> texts_;
  bool answered_ = false;  // the question about the note
};

}  // namespace

template <class T, class Make, class Read>
void questions::ask(const shared_keys& keys, Make make, Read read, answer_handler<T> done) const {
  // close() promises shutting_down for every later call.
  if (parts_.closed()) return done({failure{errc::shutting_down, {}}});
  // The closure keeps the keys, because a call refers to them until it is answered. A question may be refused by a full
  // queue: it can be asked again.
  auto send = [this, keys, make](time_point end, topology::handler then) {
    send_until(parts_.env, end, make(*keys), urgency::refusable, std::move(then));
  };
  // Its caller is answered even if the client is closed meanwhile.
  auto answered = [read, done = parts_.calls.until_closed(errc::shutting_down, std::move(done))](
                      const outcome& outcome) { done(read(outcome)); };
  ask_twice(parts_.env, parts_.env.settings.command_timeout, std::move(send), std::move(answered));
}

void questions::is_locked(const shared_keys& keys, answer_handler<bool> done) const {
  ask(keys, keys->of.exists.make, keys->of.exists.read, std::move(done));
}

void questions::count(const shared_keys& keys, const owner_field& field, answer_handler<unsigned> done) const {
  const auto kept = std::make_shared<const owner_field>(field);  // the call refers to it
  const auto& step = keys->of.count;
  ask(
      keys, [kept, make = step.make](const lock_keys& keys) { return make(keys, *kept); },
      [kept, read = step.read](const outcome& outcome) { return read(outcome, *kept); }, std::move(done));
}

void questions::holder(const shared_keys& keys, answer_handler<std::optional<lock_holder>> done) const {
  if (parts_.env.notes && !parts_.closed()) done = with_note(keys, std::move(done));
  auto read = [keys](const outcome& outcome) {
    auto reply = keys->of.holder.read(outcome);
    // The public type is made here, so that the protocol does not depend on it.
    answer<std::optional<lock_holder>> answer{std::move(reply.failed), {}};
    if (auto& holder = reply.value) answer.value = lock_holder{std::move(holder->field), holder->count, holder->ttl};
    return answer;
  };
  ask(keys, keys->of.holder.make, std::move(read), std::move(done));
}

// Sent before the question about the holder: a caller that gets an exception for lack of memory has no answer to come.
answer_handler<std::optional<lock_holder>> questions::with_note(const shared_keys& keys,
                                                                answer_handler<std::optional<lock_holder>> done) const {
  const auto both = std::make_shared<noted_holder>(parts_.calls.until_closed(errc::shutting_down, std::move(done)));
  send_until(parts_.env, parts_.env.now() + parts_.env.settings.command_timeout, read_note(*keys), urgency::refusable,
             [both, keys](const outcome& note) { both->noted(note); });
  return [both](answer<std::optional<lock_holder>>&& holder) { both->named(std::move(holder)); };
}

void questions::remaining_ttl(const shared_keys& keys, answer_handler<std::optional<milliseconds>> done) const {
  ask(keys, keys->of.ttl.make, keys->of.ttl.read, std::move(done));
}

void questions::semaphore(const shared_keys& keys, answer_handler<semaphore_state> done) const {
  ask(keys, keys->of.semaphore.make, keys->of.semaphore.read, std::move(done));
}

void questions::read_holds(const shared_keys& keys, answer_handler<unsigned> done) const {
  auto read = [](const outcome& outcome) -> answer<unsigned> {
    auto state = shared_lock::read_state(outcome);
    return {std::move(state.failed), state.value.readers};
  };
  ask(keys, shared_lock::state, read, std::move(done));
}

void questions::waiters(const shared_keys& keys, answer_handler<unsigned> done) const {
  const auto& step = keys->of.places.waiters;
  ask(keys, step.make, step.read, std::move(done));
}

void questions::leader(const shared_keys& keys, answer_handler<std::optional<leader_answer>> done) const {
  ask(keys, election_steps::observe, election_steps::read_leader, std::move(done));
}

void questions::last_token(const shared_keys& keys, answer_handler<std::optional<std::uint64_t>> done) const {
  // Other kinds have no counter, so no command is needed.
  if (!keys->of.fenced()) return done({});
  ask(keys, keys->of.last_token.make, keys->of.last_token.read, std::move(done));
}

}  // namespace holdfast::detail
