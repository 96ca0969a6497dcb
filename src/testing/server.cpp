// SPDX-License-Identifier: BSL-1.0
#include <holdfast/testing/server.hpp>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/kind.hpp"
#include "protocol/latch/countdown_latch.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "protocol/shared/shared_lock.hpp"
#include "protocol/vote/vote.hpp"
#include "testing/stage.hpp"

namespace holdfast::testing {
namespace {

/// The owner field of the client that takes locks over.
const std::string rival = "another-client:1";

/// The TTL of one reader is a key of its own, whose name ends with this.
constexpr std::string_view deadline_suffix = ":rwlock_timeout:1";
constexpr std::string_view write_suffix = ":write";
constexpr long long most_counted = 0xFFFF'FFFF;

/// A string that is no lock: a fencing counter, a turn, a reader's TTL, the mark of a call to a latch, or that of a
/// voting primary.
bool is_side_key(std::string_view key) {
  return key.starts_with("redisson_lock_token:") || key.starts_with("holdfast_turn:") ||
         key.starts_with("holdfast_done:") || key.ends_with(deadline_suffix) || key == detail::vote_marker;
}

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

void take_whole(sim::keyspace& keys, std::string_view key, milliseconds ttl, bool hash) {
  sim::keyspace::entry taken{rival, keys.now() + ttl.count()};
  if (hash) {
    sim::hash_value count;
    count.set(rival, "1");
    taken.value = std::move(count);
  }
  keys.restore(key, std::move(taken));
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
  const bool leads = fields.size() == 3 && entry->hash()->find("leader") && entry->hash()->find("term");
  const auto held = std::find_if(fields.begin(), fields.end(), [&](const auto& field) {
    return !leads || (field.first != "leader" && field.first != "term");
  });
  long long count = 0;
  if ((fields.size() != 1 && !leads) || !sim::to_integer(held->second, count)) return std::nullopt;
  found.id = held->first;
  found.count = static_cast<unsigned>(count);
  return found;
}

/// "read" or "write"; null: no shared mutex.
const std::string* mode_in(const sim::keyspace& keys, std::string_view key) {
  const auto* entry = keys.find(key);
  const auto* mode = entry && entry->hash() ? entry->hash()->find("mode") : nullptr;
  return mode && (*mode == "read" || *mode == "write") ? mode : nullptr;
}

std::string deadline_key(std::string_view key, std::string_view owner) {
  return detail::joined(detail::below(key, std::string(owner).append(deadline_suffix)));
}

/// The writer of a shared mutex, or its readers. A reader without a TTL is dead, and the next writer takes the lock.
std::vector<stored_lock> holds_in(const sim::keyspace& keys, std::string_view key) {
  std::vector<stored_lock> all;
  const auto* mode = mode_in(keys, key);
  if (!mode) {
    if (auto holder = holder_in(keys, key)) all.push_back({std::string(key), std::move(*holder)});
    return all;
  }
  const bool reads = *mode == "read";
  const auto* lock = keys.find(key);
  for (const auto& [field, text] : lock->hash()->fields()) {
    if (field == "mode" || field.ends_with(write_suffix) == reads) continue;
    long long count = 0;
    const auto* deadline = reads ? keys.find(deadline_key(key, field)) : lock;
    if (!deadline || !deadline->expires || !sim::to_integer(text, count)) continue;
    const auto owner = reads ? field : field.substr(0, field.size() - write_suffix.size());
    all.push_back(
        {std::string(key),
         {.id = owner, .count = static_cast<unsigned>(count), .ttl = milliseconds(*deadline->expires - keys.now())},
         reads});
  }
  return all;
}

void take_side(sim::keyspace& keys, std::string_view key, milliseconds ttl, bool reads) {
  const auto end = keys.now() + ttl.count();
  sim::keyspace::entry taken{sim::hash_value(), end};
  const auto* mode = mode_in(keys, key);
  if (reads && mode && *mode == "read") {
    taken = *keys.find(key);
    if (taken.expires) taken.expires = std::max(*taken.expires, end);
  }
  auto& fields = std::get<sim::hash_value>(taken.value);
  fields.set("mode", reads ? "read" : "write");
  fields.set(reads ? rival : rival + std::string(write_suffix), "1");
  keys.restore(key, std::move(taken));
  if (reads) keys.put(deadline_key(key, rival), "1").expires = end;
}

/// True: that client's hold ends, and the clients that wait are told in their order.
bool give_side_back(sim::node& program, std::string_view key) {
  const auto* mode = mode_in(program.keys(), key);
  if (!mode) return false;
  const bool reads = *mode == "read";
  const auto field = reads ? rival : rival + std::string(write_suffix);
  if (!program.keys().find(key)->hash()->find(field)) return false;
  const auto beside = [&](std::string_view stem) { return detail::joined(detail::beside(stem, key)); };
  std::vector<std::string> words{"EVAL",
                                 std::string((reads ? detail::lua::read_release : detail::lua::write_release).body),
                                 reads ? "5" : "4", std::string(key)};
  if (reads) words.push_back(deadline_key(key, rival));
  for (const auto* stem : {"holdfast_queue", "holdfast_readers", "holdfast_turn"}) words.push_back(beside(stem));
  words.insert(words.end(), {"publish", detail::channel_of(detail::lock_keys(detail::shared_writer, key)), field});
  words.emplace_back("20");
  const auto reply = program.execute(words);
  HOLDFAST_ASSERT(reply.type != redis::reply::kind::error);
  return true;
}

/// True: waiters stand in the queue of this lock. The hold of the other client ends, and the first of them is told.
bool give_back_in_order(sim::node& program, std::string_view key) {
  const auto queue = detail::joined(detail::beside("redisson_lock_queue", key));
  if (!program.keys().find(queue)) return false;
  const auto reply = program.execute({"EVAL", std::string(detail::lua::fair_release.body), "3", std::string(key), queue,
                                      detail::joined(detail::beside("redisson_lock_timeout", key)), "publish", rival});
  HOLDFAST_ASSERT(reply.type != redis::reply::kind::error);
  return true;
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
  for (const auto& [key, entry] : keys.all()) {
    auto holds = holds_in(keys, key);
    std::move(holds.begin(), holds.end(), std::back_inserter(all));
  }
  return all;
}

std::optional<lock_holder> server::holder(std::string_view key) const {
  auto holds = holds_in(machine_->program().keys(), key);
  return holds.empty() ? std::nullopt : std::optional(std::move(holds.front().holder));
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

std::uint32_t server::latch_count(std::string_view key) const {
  const auto left = counter_in(machine_->program().keys(), key).value_or(0);
  return static_cast<std::uint32_t>(std::clamp(left, 0LL, most_counted));
}

void server::count_down(std::string_view key, std::uint32_t n) {
  auto& program = machine_->program();
  const auto left = latch_count(key);
  if (left == 0) throw std::logic_error(error_text(quoted(key) + " is no latch that is set"));
  if (n < left) {
    program.tamper().put(key, std::to_string(left - n));
    return;
  }
  program.tamper().erase(key);
  program.execute({"PUBLISH", detail::channel_of(*detail::latch_keys(key)), "0"});
}

void server::lose(std::string_view key) {
  const auto permits = semaphore(key);
  if (!holder(key) && !(permits && !permits->out.empty()))
    throw std::logic_error(error_text("nobody holds " + quoted(key)));
  auto& keys = machine_->program().tamper();
  keys.erase(key);
  if (permits) keys.erase(permits_key(key));
  machine_->program().tampered();
}

void server::take_over(std::string_view key, milliseconds ttl, format as) {
  if (ttl < milliseconds(1) || ttl > longest) throw std::invalid_argument(error_text("a TTL is 1 ms to ten years"));
  auto& keys = machine_->program().tamper();
  if (mode_in(keys, key))
    as = as == format::reader ? format::reader : format::shared;
  else if (const auto* entry = keys.find(key))
    as = entry->text() ? format::string : format::hash;
  if (semaphore(key)) as = format::permits;
  if (as == format::shared || as == format::reader)
    take_side(keys, key, ttl, as == format::reader);
  else if (as == format::permits)
    take_permit(keys, key, ttl);
  else
    take_whole(keys, key, ttl, as == format::hash);
  machine_->program().tampered();
}

void server::give_back(std::string_view key) {
  auto& program = machine_->program();
  if (const auto permit = taken_permit(program.keys(), key)) return give_permit_back(program, key, *permit);
  if (give_side_back(program, key)) return;
  const auto found = holder(key);
  if (!found || found->id != rival) throw std::logic_error(error_text("take_over() has not got " + quoted(key)));
  if (give_back_in_order(program, key)) return;
  const detail::lock_keys at(program.keys().find(key)->text() ? detail::simple_lock : detail::plain_lock, key);
  program.tamper().erase(key);
  program.tampered();
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
