// SPDX-License-Identifier: BSL-1.0
#include "sync/inquiry/questions.hpp"

#include "sync/command/send_once.hpp"

namespace holdfast::detail {

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
  auto read = [keys](const outcome& outcome) {
    auto reply = keys->of.holder.read(outcome);
    // The public type is made here, so that the protocol does not depend on it.
    answer<std::optional<lock_holder>> answer{std::move(reply.failed), {}};
    if (auto& holder = reply.value) answer.value = lock_holder{std::move(holder->field), holder->count, holder->ttl};
    return answer;
  };
  ask(keys, keys->of.holder.make, std::move(read), std::move(done));
}

void questions::remaining_ttl(const shared_keys& keys, answer_handler<std::optional<milliseconds>> done) const {
  ask(keys, keys->of.ttl.make, keys->of.ttl.read, std::move(done));
}

void questions::semaphore(const shared_keys& keys, answer_handler<semaphore_state> done) const {
  ask(keys, keys->of.semaphore.make, keys->of.semaphore.read, std::move(done));
}

void questions::last_token(const shared_keys& keys, answer_handler<std::optional<std::uint64_t>> done) const {
  // Other kinds have no counter, so no command is needed.
  if (!keys->of.fenced()) return done({});
  ask(keys, keys->of.last_token.make, keys->of.last_token.read, std::move(done));
}

}  // namespace holdfast::detail
