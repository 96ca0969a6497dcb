// SPDX-License-Identifier: BSL-1.0
#include <holdfast/testing/server.hpp>

#include <stdexcept>
#include <utility>

#include "base/escape.hpp"
#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/kind.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "protocol/vote/vote.hpp"
#include "testing/stage.hpp"

namespace holdfast::testing {
namespace {

/// The owner field of the client that takes locks over.
const std::string rival = "another-client:1";

/// A fencing counter, or the mark of a voting primary.
bool is_side_key(std::string_view key) { return key.starts_with("redisson_lock_token:") || key == detail::vote_marker; }

std::string quoted(std::string_view key) {
  constexpr std::size_t longest_name = 80;
  return detail::in_quotes(key, longest_name);
}

/// The first half of the id of each permit that is taken over.
const std::string rival_client = rival.substr(0, 8);

std::string permits_key(std::string_view key) { return detail::joined(detail::below(key, "timeout")); }

/// The counter of a semaphore; empty: there is none.
std::optional<long long> counter_in(const sim::keyspace& keys, std::string_view key) {
  const auto* entry = keys.find(key);
  long long left = 0;
  const bool counts = entry && entry->text() && !entry->expires && sim::to_integer(*entry->text(), left);
  return counts && !is_side_key(key) ? std::optional(left) : std::nullopt;
}

std::string hex_of(std::string_view id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char each : id) {
    const auto byte = static_cast<unsigned char>(each);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

/// Empty: there is neither a counter nor a permit.
std::optional<stored_semaphore> semaphore_in(const sim::keyspace& keys, std::string_view key) {
  const auto left = counter_in(keys, key);
  const auto* entry = keys.find(permits_key(key));
  const auto* out = entry ? entry->sorted() : nullptr;
  if (!left && !out) return std::nullopt;
  stored_semaphore found{std::string(key)};
  if (left) found.permits = static_cast<unsigned>(*left + static_cast<long long>(out ? out->members().size() : 0));
  if (!out) return found;
  for (const auto& [end, id] : out->members())
    if (const milliseconds ttl(static_cast<sim::wall_ms>(end) - keys.now()); ttl > ttl.zero())
      found.out.push_back({.id = hex_of(id), .count = 1, .ttl = ttl});
  return found;
}

/// Takes a free permit, or else the permit that ends next. Without a counter the next acquire makes it from those out.
void take_permit(sim::keyspace& keys, std::string_view key, milliseconds ttl) {
  auto* const out = keys.to_write<sim::sorted_set>(permits_key(key));
  if (!out) throw std::logic_error(error_text(quoted(key) + " is no semaphore"));
  const auto left = counter_in(keys, key);
  if (left && *left > 0)
    keys.put(key, std::to_string(*left - 1));
  else if (left && !out->members().empty())
    out->erase(std::string(out->members().begin()->second));
  std::string id;
  for (int number = 10'000'000; id.empty() || out->score_of(id); ++number) id = rival_client + std::to_string(number);
  out->set(id, static_cast<double>(keys.now() + ttl.count()));
}

/// The id of a permit that was taken over and has not ended; empty: there is none.
std::optional<std::string> taken_permit(const sim::keyspace& keys, std::string_view key) {
  const auto* entry = keys.find(permits_key(key));
  if (!entry || !entry->sorted()) return std::nullopt;
  for (const auto& [end, id] : entry->sorted()->members())
    if (id.starts_with(rival_client) && end > static_cast<double>(keys.now())) return id;
  return std::nullopt;
}

void give_permit_back(sim::node& program, std::string_view key, const std::string& id) {
  const detail::lock_keys at(detail::permit_lock, key);
  program.execute({"EVAL", std::string(detail::lua::permits_release.body), "3", std::string(key), permits_key(key),
                   detail::joined(detail::beside("holdfast_turn", key)), "publish", detail::channel_of(at), id});
}

/// Empty for data that are no lock: a fencing counter, the mark of a voting primary, the test's own data.
std::optional<lock_holder> holder_in(const sim::keyspace& keys, std::string_view key) {
  const auto* entry = keys.find(key);
  if (!entry || is_side_key(key)) return std::nullopt;
  lock_holder found;
  found.ttl = entry->expires ? milliseconds(*entry->expires - keys.now()) : milliseconds::max();
  if (const auto* text = entry->text()) {
    if (counter_in(keys, key)) return std::nullopt;
    found.id = *text;
    found.count = 1;
    return found;
  }
  if (!entry->hash()) return std::nullopt;
  const auto& fields = entry->hash()->fields();
  long long count = 0;
  if (fields.size() != 1 || !sim::to_integer(fields.front().second, count)) return std::nullopt;
  found.id = fields.front().first;
  found.count = static_cast<unsigned>(count);
  return found;
}

sim::refusal refusal_of(refusal why) {
  switch (why) {
    case refusal::none: break;
    case refusal::out_of_memory: return sim::refusal::out_of_memory;
    case refusal::disk_failed: return sim::refusal::disk_failed;
    case refusal::too_few_replicas: return sim::refusal::no_replicas;
    case refusal::read_only: return sim::refusal::replica;
    case refusal::loading: return sim::refusal::loading;
  }
  return sim::refusal::none;
}

}  // namespace

server::server(context where) : world(std::move(where), 1), machine_(&stage_->machines().front()) {}

server::server(std::shared_ptr<stage> on, sim::server& machine) : world(std::move(on)), machine_(&machine) {}

server::~server() { stage_->end(); }

client server::make_client(config config) { return make_client(stage_->executor(), std::move(config)); }

client server::make_client(asio::any_io_executor executor, config config) {
  return stage_->make_client(executor, std::move(config), *machine_);
}

link server::link_of(const client& of) const {
  auto* way = stage_->way_of(of, *machine_);
  if (!way) throw std::invalid_argument(error_text("this is no client of this server"));
  return {stage_, *way};
}

lease server::held_lease(std::string_view name) {
  stage_->check_outside("held_lease()");
  if (!own_) own_.emplace(make_client());
  auto got = run(own_->fenced_mutex(name).try_lock());
  if (!got) throw std::logic_error(error_text(quoted(name) + " is held by " + holder(name).value_or(lock_holder()).id));
  return std::move(*got);
}

lease server::lost_lease(std::string_view name) {
  auto lease = held_lease(name);
  lose(name);
  try {
    run(lease.renew());
  } catch (const error& failure) {
    if (failure.code() != errc::lost) throw;
  }
  return lease;
}

std::vector<stored_lock> server::locks() const {
  const auto& keys = machine_->program().keys();
  std::vector<stored_lock> all;
  for (const auto& [key, entry] : keys.all())
    if (auto holder = holder_in(keys, key)) all.push_back({key, std::move(*holder)});
  return all;
}

std::optional<lock_holder> server::holder(std::string_view key) const {
  return holder_in(machine_->program().keys(), key);
}

std::vector<stored_semaphore> server::semaphores() const {
  const auto& keys = machine_->program().keys();
  std::vector<stored_semaphore> all;
  for (const auto& [key, entry] : keys.all())
    if (auto found = counter_in(keys, key) ? semaphore_in(keys, key) : std::nullopt) all.push_back(std::move(*found));
  return all;
}

std::optional<stored_semaphore> server::semaphore(std::string_view key) const {
  return semaphore_in(machine_->program().keys(), key);
}

void server::lose(std::string_view key) {
  const auto permits = semaphore(key);
  if (!holder(key) && !(permits && !permits->out.empty()))
    throw std::logic_error(error_text("nobody holds " + quoted(key)));
  auto& keys = machine_->program().tamper();
  keys.erase(key);
  if (permits) keys.erase(permits_key(key));
}

void server::take_over(std::string_view key, milliseconds ttl, format as) {
  if (ttl < milliseconds(1) || ttl > longest) throw std::invalid_argument(error_text("a TTL is 1 ms to ten years"));
  auto& keys = machine_->program().tamper();
  if (const auto* entry = keys.find(key)) as = entry->text() ? format::string : format::hash;
  if (semaphore(key)) as = format::permits;
  if (as == format::permits) return take_permit(keys, key, ttl);
  sim::keyspace::entry taken{rival, keys.now() + ttl.count()};
  if (as == format::hash) {
    sim::hash_value count;
    count.set(rival, "1");
    taken.value = std::move(count);
  }
  keys.restore(key, std::move(taken));
}

void server::give_back(std::string_view key) {
  auto& program = machine_->program();
  if (const auto permit = taken_permit(program.keys(), key)) return give_permit_back(program, key, *permit);
  const auto found = holder(key);
  if (!found || found->id != rival) throw std::logic_error(error_text("take_over() has not got " + quoted(key)));
  const detail::lock_keys at(program.keys().find(key)->text() ? detail::simple_lock : detail::plain_lock, key);
  program.tamper().erase(key);
  program.execute({"PUBLISH", detail::channel_of(at), "0"});
}

void server::stop_answering() { machine_->stop(); }
void server::answer_again() { machine_->resume(); }
void server::shut_down() { machine_->shut_down(); }

void server::start() {
  if (machine_->down()) machine_->start(true);
}

void server::restart() {
  shut_down();
  start();
}

void server::restart_empty() {
  shut_down();
  machine_->start(false);
}

void server::refuse(refusal why) { machine_->program().refuse(refusal_of(why)); }

void server::step_clock(milliseconds by) {
  if (by < -longest || by > longest) throw std::invalid_argument(error_text("a clock is stepped by ten years at most"));
  machine_->clock().step(by);
}

}  // namespace holdfast::testing
