// SPDX-License-Identifier: BSL-1.0
#include "sync/questions.hpp"

namespace holdfast::detail {

template <class T, class Read>
void questions::ask_by(copy_sender send, Read read, value_handler<T> done) const {
  if (with_.closed()) return done(errc::closed, {}, {});
  auto answered = [read, done = with_.calls.until_closed(std::move(done))](const outcome& o) {
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail, {});
    auto said = read(o.reply);
    if (said.error) return done(said.error->code, said.error->text, {});
    done({}, {}, std::move(said.value));
  };
  ask_twice(with_.around, with_.around.settings.command_timeout, std::move(send), std::move(answered));
}

template <class T, class Read>
void questions::ask(const shared_keys& keys, std::string command, Read read, value_handler<T> done) const {
  auto send = [this, keys, command = std::move(command)](nanoseconds left, topology::handler then) {
    with_.around.send(keys->lock, command, {.timeout = left}, std::move(then));
  };
  ask_by(std::move(send), read, std::move(done));
}

void questions::is_locked(const shared_keys& keys, value_handler<bool> done) const {
  ask<bool>(keys, redis::make_command({"EXISTS", keys->lock}), read_exists, std::move(done));
}

void questions::count(const shared_keys& keys, const owner_field& field, value_handler<unsigned> done) const {
  ask<unsigned>(keys, redis::make_command({"HGET", keys->lock, field.to_text()}), read_count, std::move(done));
}

void questions::holder(const shared_keys& keys, value_handler<std::optional<lock_holder>> done) const {
  auto send = [this, keys](nanoseconds left, topology::handler then) {
    with_.around.run(scripts::holder(*keys), {.timeout = left}, std::move(then));
  };
  auto read = [](const redis::reply& r) {
    auto said = read_holder(r);
    answer<std::optional<lock_holder>> a{std::move(said.error), {}};
    if (auto& who = said.value) a.value = lock_holder{std::move(who->field), who->count, who->ttl};
    return a;
  };
  ask_by(std::move(send), read, std::move(done));
}

void questions::remaining_ttl(const shared_keys& keys, value_handler<std::optional<milliseconds>> done) const {
  ask<std::optional<milliseconds>>(keys, redis::make_command({"PTTL", keys->lock}), read_ttl, std::move(done));
}

void questions::last_token(const shared_keys& keys, value_handler<std::optional<std::uint64_t>> done) const {
  ask<std::optional<std::uint64_t>>(keys, redis::make_command({"GET", token_key(*keys)}), read_token, std::move(done));
}

}  // namespace holdfast::detail
