// SPDX-License-Identifier: BSL-1.0
#include "chaos/testimony.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

namespace holdfast::chaos {
namespace {

/// The key that lives as long as the hold. The lock's own lives as long as the last of its readers.
std::string key_of(const lease& l, lock_name::kind by) {
  const auto deadline_of_reader = "{" + l.name() + "}:" + l.id() + ":rwlock_timeout:1";
  return by == lock_name::kind::reader ? deadline_of_reader : l.name();
}

}  // namespace

testimony::testimony(workplace& place, const asio::any_io_executor& on, std::size_t client_number)
    : place_(place), on_(on), client_number_(client_number), witness_(on, place.servers) {}

void testimony::asked(std::uint64_t operation, const std::string& locks, lock_name::kind by, const section& s,
                      std::optional<std::uint64_t> whole) {
  const bool forever = s.how == section::wait_mode::forever;
  auto line = place_.log.write("acquire");
  line.add("op", operation).add("client", client_number_).add("lock", locks).add("kind", to_string(by));
  line.add("ttl", s.ttl.count()).add("renewed", s.renewed).add("wait", forever ? -1 : s.wait.count());
  if (whole) line.add("whole", *whole);
  if (s.replicas > 0) line.add("replicas", s.replicas);
  if (s.max_hold) line.add("max_hold", s.max_hold->count());
  if (s.as_body) line.add("as_body", true);
  if (by == lock_name::kind::permits) line.add("permits", s.permits).add("of", permits_in_all);
}

void testimony::granted(std::uint64_t operation, const lease& l) {
  const auto seen = now();
  const auto valid = l.valid_for();
  auto line = place_.log.write("acquired");
  line.add("op", operation).add("lock", l.name()).add("id", l.id()).add("seen", seen).add("valid", valid.count());
  if (l.token()) line.add("token", *l.token());
}

void testimony::not_granted(std::uint64_t operation, const error_code& why) {
  const bool cancelled = why == asio::error::operation_aborted;
  auto line = place_.log.write(!why ? "busy" : cancelled ? "cancelled" : "failed");
  line.add("op", operation);
  if (why) line.add("error", why.message());
}

bool testimony::look(std::uint64_t operation, const lease& l) {
  const auto seen = now();
  const auto valid = l.valid_for();
  const bool held = l.held();
  place_.log.write("look").add("hold", operation).add("seen", seen).add("valid", valid.count()).add("held", held);
  return held;
}

void testimony::watch(std::uint64_t operation, const lease& l, std::function<void()> lost) {
  auto listen = [](workplace& place, std::uint64_t op, asio::awaitable<error_code> loss,
                   std::function<void()> tell) -> asio::awaitable<void> {
    const auto why = co_await as_result(std::move(loss));
    if (!why) co_return;
    place.log.write("lost").add("hold", op).add("error", why->message());
    tell();
  };
  asio::co_spawn(on_, listen(place_, operation, l.lost(), std::move(lost)), asio::detached);
}

void testimony::renewing(std::uint64_t operation) { place_.log.write("renew").add("hold", operation); }

void testimony::renewed(std::uint64_t operation, const result<void>& done) {
  auto line = place_.log.write(done ? "renewed" : "renew_failed");
  line.add("hold", operation);
  if (!done) line.add("error", done.error().message());
}

void testimony::releasing(std::uint64_t operation, std::size_t left) {
  place_.log.write("release").add("hold", operation).add("left", left);
}

void testimony::released(std::uint64_t operation, std::size_t left, const result<void>& done) {
  auto line = place_.log.write(done ? "released" : "release_failed");
  line.add("hold", operation).add("left", left);
  if (!done) line.add("error", done.error().message());
}

void testimony::unlocked_again(std::uint64_t operation, const result<void>& done) {
  place_.log.write("unlocked_again").add("hold", operation).add("error", done ? "none" : done.error().message());
}

asio::awaitable<void> testimony::check_key(std::uint64_t operation, const lease& l, lock_name::kind by) {
  const auto seen = now();
  const auto valid = l.valid_for();
  const auto ttl = co_await witness_.ttl(key_of(l, by));
  if (!ttl) co_return;
  place_.log.write("witness").add("hold", operation).add("seen", seen).add("valid", valid.count()).add("ttl", *ttl);
}

asio::awaitable<void> testimony::check_gone(std::uint64_t operation, const std::string& lock) {
  const auto ttl = co_await witness_.ttl(lock);
  if (ttl) place_.log.write("afterwards").add("hold", operation).add("ttl", *ttl);
}

void testimony::use_resource(std::uint64_t operation, const lease& l, lock_name::kind by,
                             std::optional<long long> counted) {
  if (counted && by == lock_name::kind::reader) {
    const auto last = place_.resource.read_counter(l.name());
    place_.resource.count_read(l.name());
    place_.log.write("read").add("hold", operation).add("first", *counted).add("last", last);
  } else if (counted) {
    place_.resource.write_counter(l.name(), *counted + 1);
    place_.log.write("update").add("hold", operation).add("wrote", *counted + 1);
  }
  const auto token = l.token();
  if (!token) return;
  const auto said = place_.resource.write_register(l.name(), *token);
  auto line = place_.log.write("write");
  line.add("hold", operation).add("token", *token).add("number", said.number).add("accepted", said.accepted);
}

}  // namespace holdfast::chaos
