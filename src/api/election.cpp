// SPDX-License-Identifier: BSL-1.0
#include <holdfast/election.hpp>

#include <utility>

#include <holdfast/client.hpp>

#include "api/lock_call.hpp"
#include "protocol/election/election_lock.hpp"

namespace holdfast {
namespace {

using detail::access;
using detail::answer;
using detail::caller;
using detail::engine;
using detail::failure;
using detail::leader_answer;
using detail::shared_keys;

using known_leader = std::optional<leader_info>;

known_leader info_of(std::optional<leader_answer>&& found) {
  if (!found) return std::nullopt;
  leader_info info{.term = found->term, .value = {}, .id = {}, .ttl = found->ttl};
  if (found->value) {
    info.value = std::move(*found->value);
    info.id = std::move(found->field);
  }
  return info;
}

/// Of a holder that is no candidate the observer knows the term alone.
std::optional<leader_answer> answer_of(known_leader&& known) {
  if (!known) return std::nullopt;
  leader_answer answer{.ttl = known->ttl, .term = known->term, .field = std::move(known->id)};
  if (!answer.field.empty()) answer.value = std::move(known->value);
  return answer;
}

auto leader_to(std::shared_ptr<caller<known_leader>> to) {
  return [to = std::move(to)](answer<std::optional<leader_answer>>&& found) {
    to->answer(found.failed, info_of(std::move(found.value)));
  };
}

}  // namespace

election::election(mutex lock) : lock_(std::move(lock)) {}

asio::awaitable<lease> election::campaign(std::string value, lock_options options) const {
  return candidate(std::move(value)).lock(options);
}

asio::awaitable<std::optional<lease>> election::try_campaign(std::string value, lock_options options) const {
  return candidate(std::move(value)).try_lock(options);
}

asio::awaitable<std::optional<lease>> election::try_campaign_for(milliseconds wait, std::string value,
                                                                 lock_options options) const {
  return candidate(std::move(value)).try_lock_for(wait, options);
}

asio::awaitable<void> election::proclaim(const lease& leadership, std::string value) const {
  const auto& record = access::record(leadership);
  if (!record) return detail::not_held<void>();
  auto home = detail::home_of(*record);
  const auto& here = access::home(lock_);
  const bool ours = !here.owner_before(home) && !home.owner_before(here);
  auto begin = [record, keys = ours ? access::keys_with(lock_, std::move(value)) : nullptr](
                   engine& locks, const std::shared_ptr<caller<void>>& to, const auto&) {
    to->concerns(record->of->keys());
    if (keys) detail::check_value(keys->value);
    auto done = [to](const std::optional<failure>& failed) { to->answer(failed); };
    if (auto place = locks.elections().proclaim(record, keys, std::move(done))) to->cancels(std::move(place));
  };
  return detail::on_strand<void>(std::move(home), std::move(begin));
}

asio::awaitable<std::optional<leader_info>> election::leader() const {
  return detail::on_lock<known_leader>(
      access::home(lock_), access::keys(lock_),
      [](engine& locks, const shared_keys& keys, const std::shared_ptr<caller<known_leader>>& to, const auto&) {
        locks.ask().leader(keys, leader_to(to));
      });
}

asio::awaitable<std::optional<leader_info>> election::next(std::optional<leader_info> after) const {
  return detail::on_lock<known_leader>(
      access::home(lock_), access::keys(lock_),
      [known = answer_of(std::move(after))](engine& locks, const shared_keys& keys,
                                            const std::shared_ptr<caller<known_leader>>& to, const auto&) {
        if (auto place = locks.elections().next(keys, known, leader_to(to))) to->cancels(std::move(place));
      });
}

asio::awaitable<bool> election::force_unlock() const { return lock_.force_unlock(); }

mutex election::candidate(std::string value) const { return access::make_candidate(lock_, std::move(value)); }

const std::string& election::name() const noexcept { return lock_.name(); }

election client::election(std::string_view name) const { return access::make_election(core_, name, std::nullopt); }

election client::election(std::string_view name, holdfast::owner owner) const {
  return access::make_election(core_, name, owner);
}

}  // namespace holdfast
