// SPDX-License-Identifier: BSL-1.0
#include "sync/registry.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <boost/container/static_vector.hpp>
#include <new>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/if_memory.hpp"

namespace holdfast::detail {
namespace {

constexpr nanoseconds name_interval = std::chrono::microseconds(50), longest_spread = std::chrono::seconds(1);
/// All names at once would keep the strand: those of 200,000 callers for a quarter of a second.
constexpr std::size_t names_at_once = 256;
constexpr nanoseconds portion_interval = std::chrono::microseconds(100);
constexpr auto* holds_no_more = "it is being drained, and its owner holds no more";

}  // namespace

registry::registry(const engine_parts& parts, owner_fields of_client, function<void()> drained)
    : name_host(parts, std::move(of_client)), drained_(std::move(drained)), next_names_(parts.env.alarms) {}

// Nobody is answered here. Requests, lines and holds may be in a circle of references, through a timer, a queue or a
// caller. So each of them is taken apart.
registry::~registry() {
  while (!asking_.empty()) {
    const auto caller = asking_.front().kept;
    caller->forget_caller();
    forget(*caller);
  }
  for (auto& each : names_) each.take_apart();
  names_.clear_and_dispose(unmake_name());
  end_changes();
}

std::shared_ptr<acquisition> registry::lock(const shared_keys& keys, const lock_request& request, lock_handler&& done) {
  // One search finds the name, or the place where a new one belongs.
  const auto key = name::key::of(*keys);
  const auto place = names_.lower_bound(key);
  name* found = place != names_.end() && name::key::of(*place->keys()) == key ? &*place : nullptr;
  // A part of lock_any() never re-enters: its caller wants a lock that no owner of this client has.
  auto* mine = found && !request.one_of_several ? found->outer_of(request.owner) : nullptr;
  // A lost hold hinders no new lock of a kind that refuses nested calls: there is nothing to nest in.
  if (mine && name::refusal_in(*mine, keys->of) && !mine->live()) mine = nullptr;
  // Nested calls pass even while the client drains: their owner finishes its work.
  if (!mine && refuses(request.owner)) {
    done({failure{errc::shutting_down, drained_without}});
    return nullptr;
  }
  auto caller = make_pooled<acquisition>(parts.env.blocks, parts.env, keys, request, std::move(done));
  if (mine) {
    found->nest(*mine, caller);
    return caller;
  }
  if (found && found->let_join(*caller)) return caller;
  // A draining client must find this waiter again when its owner's last hold ends.
  if (may_lock) may_lock->waits(request.owner, keys->name);
  const name::visit here(found ? *found : make_name(keys, place));
  if (found) here->report_own_wait(*caller);
  here->join(caller);
  return caller;
}

void registry::begin(const std::shared_ptr<multi_key_request>& caller) {
  // A request may be answered inside begin(). forget() has come already then, and would not come again.
  caller->begin();
  if (!caller->open()) return;
  asking_.push_back(caller->listed);
  caller->listed.kept = caller;
}

bool registry::untouched(const lock_keys& keys) {
  auto* const found = find(keys);
  return !found || found->untouched();
}

bool registry::nests(const lock_keys& keys, owner_id owner) {
  auto* const found = find(keys);
  return found && found->outer_of(owner);
}

std::shared_ptr<lease_record> registry::granted(const shared_keys& keys, const lock_request& request,
                                                const owner_field& field, const attempt& grant, time_point now) {
  return at(keys)->hold_for(request, keys, field, grant, now);
}

void registry::give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl, function<void()> tried) {
  at(keys)->give_back(keys, field, ttl, std::move(tried), everywhere);
}

void registry::server_changed(node_id node) {
  // A new server may lack what the old one has answered. Releases come first: a waiter of another client needs them.
  repeat_releases(std::nullopt);
  if (parts.env.servers.primaries() > 1) return;
  for (auto& each : names_)
    if (parts.env.servers.node_of(each.keys()->lock) == node)
      each.each_hold([](hold& held) { held.count_elsewhere(); });
}

// answered_releases says why releases are repeated. Obligations are written before all other commands that wait for the
// same connection, so the next request for these names finds them free. A release without memory leaves its key to the
// TTL.
void registry::repeat_releases(std::optional<key_group> group) {
  parts.freeing.take_answered_elsewhere(group, [this](const answered_releases::entry& answered) {
    if_memory([&] {
      const auto of = at(answered.keys);
      parts.freeing.repeat(*of, answered);
    });
  });
}

void registry::unused(name& forgotten) noexcept {
  names_.erase_and_dispose(names_.iterator_to(forgotten), unmake_name());
}

void registry::forget(multi_key_request& answered) {
  // A request that was answered inside begin() was never listed.
  if (!answered.listed.hook.is_linked()) return;
  asking_.erase(asking_.iterator_to(answered.listed));
  answered.listed.kept.reset();
}

template <class Predicate>
void registry::fail_requests(Predicate leaves, const char* detail) {
  // fail() takes a request out of the list, and its handler may take out others. So all of them are collected first.
  std::vector<std::shared_ptr<multi_key_request>> leaving;
  for (const auto& each : asking_)
    if (leaves(each.kept->request.owner)) leaving.push_back(each.kept);
  for (const auto& each : leaving) each->fail(errc::shutting_down, detail);
}

name::visit registry::at(const shared_keys& keys) {
  const auto key = name::key::of(*keys);
  const auto place = names_.lower_bound(key);
  const bool known = place != names_.end() && name::key::of(*place->keys()) == key;
  return name::visit(known ? *place : make_name(keys, place));
}

name& registry::make_name(const shared_keys& keys, names::iterator before) {
  // Names come and go with each uncontended lock, so their memory is pooled.
  auto* const made = new (parts.env.blocks->take(sizeof(name))) name(*this, keys);
  return *names_.insert_before(before, *made);
}

name* registry::find(const lock_keys& keys) {
  const auto found = names_.find(name::key::of(keys));
  return found == names_.end() ? nullptr : &*found;
}

hold* registry::hold_of(const lock_keys& keys, owner_id owner) {
  auto* const found = find(keys);
  return found ? found->hold_of(owner) : nullptr;
}

void registry::forced(const lock_keys& keys, bool was_held) {
  if (auto* const found = find(keys)) found->forced(was_held);
}

void registry::may_be_free(const lock_keys& keys) {
  if (auto* const found = find(keys)) found->wake();
}

// Several kinds of lock may have names with one text. Only the key says that it has changed.
void registry::key_changed(std::string_view key, node_id node) {
  const std::string_view prefix = parts.env.settings.key_prefix;
  if (!key.starts_with(prefix)) return;
  const auto text = key.substr(prefix.size());
  boost::container::small_vector<name::visit, 2> concerned;
  for (auto each = names_.lower_bound(name::key::first_of(text)); each != names_.end() && each->keys()->name == text;
       ++each)
    concerned.emplace_back(*each);
  for (const auto& each : concerned) each->key_changed(node);
}

// Many names are asked for one after the other, so that a server that has forgotten all is not asked for all at once.
// A question beside another begins with the first name again.
void registry::keys_in_question(node_id node) {
  const bool of_one = parts.env.servers.primaries() == 1 && (!question_ || question_->node == node);
  question_ = question{of_one ? std::optional(node) : std::nullopt,
                       std::min<nanoseconds>(names_.size() * name_interval, longest_spread)};
  ask_next_names();
}

// Names may come and go between two portions. A new one asks by itself.
void registry::ask_next_names() {
  HOLDFAST_ASSERT(question_);
  const auto [node, spread, last] = *question_;
  auto next = last ? names_.upper_bound(name::key::of(*last)) : names_.begin();
  boost::container::static_vector<name::visit, names_at_once> portion;
  for (; next != names_.end() && portion.size() < names_at_once; ++next) portion.emplace_back(*next);
  if (next == names_.end()) {
    end_question();
  } else {
    question_->last = portion.back()->keys();
    next_names_.start(parts.env.now() + portion_interval, [this] { ask_next_names(); });
  }
  for (const auto& each : portion)
    if (!node || parts.env.servers.node_of(each->keys()->lock) == *node) each->key_in_question(spread);
}

// The portion of a question that began again may still be due.
void registry::end_question() {
  question_.reset();
  next_names_.stop();
}

bool registry::held_since(const lock_keys& keys, time_point since) {
  auto* const found = find(keys);
  return found && found->held_since(keys.of, since);
}

void registry::lost_redis() {
  // Only waiters get this notice. A holder learns of an outage by its lease.
  const auto& env = parts.env;
  for (auto& each : names_)
    if (auto* const line = each.line(); line && !env.servers.answering(each.keys()->lock))
      line->each_waiter([&](acquisition& waiter) { env.notices->lost_redis(waiter.noticed, waiter.keys); });
}

// A failed waiter may leave other names as well, so no name may go before all have been looked at.
std::vector<name::visit> registry::visit_all() { return {names_.begin(), names_.end()}; }

// All holders are known before the first waiter fails, because a waiter of one name may hold another.
void registry::drain() {
  may_lock.emplace();
  const auto all = visit_all();
  for (const auto& each : all)
    each->each_hold([&](const hold& held) {
      if (!held.ended()) held.each_owner([&](owner_id owner) { may_lock->add(owner); });
    });
  fail_requests([&](owner_id owner) { return !may_lock->contains(owner); }, drained_without);
  for (const auto& each : all)
    each->fail(
        [&](const acquisition& waiter) {
          const bool stays = may_lock->contains(waiter.request.owner);
          // Waiters that stay are noted, because their owner may lose its last hold before they are granted.
          if (stays) may_lock->waits(waiter.request.owner, each->keys()->name);
          return !stays;
        },
        errc::shutting_down, drained_without);
}

// An owner whose last hold is over waits nowhere any more, in no kind of lock.
void registry::hold_is_over(owner_id owner) {
  HOLDFAST_ASSERT(may_lock);
  std::vector<name::visit> awaited;
  for (const auto& text : may_lock->remove(owner))
    for (auto each = names_.lower_bound(name::key::first_of(text)); each != names_.end() && each->keys()->name == text;
         ++each)
      awaited.emplace_back(*each);
  fail_requests([&](owner_id requester) { return requester == owner && !may_lock->contains(owner); }, holds_no_more);
  for (const auto& each : awaited) each->fail_all_of(owner, errc::shutting_down, holds_no_more);
  if (may_lock->empty()) drained_();
}

void registry::close() {
  // The drain is over, so that no ending hold reports to it. Requests go first: their parts leave the lines themselves.
  may_lock.reset();
  end_question();
  fail_requests([](owner_id) { return true; }, "");
  const auto all = visit_all();
  for (const auto& each : all) {
    each->fail([](const acquisition&) { return true; }, errc::shutting_down, "");
    std::vector<hold_ptr> holds;  // a hold that ends may leave its name
    each->each_hold([&](hold& held) { holds.emplace_back(&held); });
    for (const auto& held : holds) {
      held->close();
      if (held->changing()) changing.push_back(held);
    }
  }
  for (const auto& each : all) each->close();
}

void registry::end_changes() {
  // The list is taken first: a change that ends may drop the last reference to its hold.
  for (const auto& held : std::exchange(changing, {})) held->forget_changes();
}

}  // namespace holdfast::detail
