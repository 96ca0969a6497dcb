// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote_of.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "protocol/replies.hpp"
#include "redis/outcome.hpp"

namespace holdfast::detail::vote_of {
namespace {

using type = redis::reply::kind;

vote yes_if(bool yes) { return yes ? vote::yes : vote::no; }

}  // namespace

vote acquire(const redis::reply& reply) {
  if (reply.type == type::nil) return vote::yes;
  return reply.type == type::integer ? vote::no : vote::none;
}

vote flag(const redis::reply& reply) {
  return reply.type == type::integer && (reply.integer == 0 || reply.integer == 1) ? yes_if(reply.integer == 1)
                                                                                   : vote::none;
}

vote sole_renewal(const redis::reply& reply) {
  const auto answer = read_renew(reply, 1);
  return answer.failed ? vote::none : yes_if(answer.value.front() == renewal_answer::confirmed);
}

vote release(const redis::reply& reply) { return reply.type == type::nil ? vote::no : force_release(reply); }

vote force_release(const redis::reply& reply) {
  return reply.type == type::integer || reply.type == type::string ? vote::yes : vote::none;
}

vote ttl(const redis::reply& reply) { return reply.type == type::integer ? yes_if(reply.integer >= -1) : vote::none; }

vote something(const redis::reply& reply) {
  if (reply.type == type::nil) return vote::no;
  return reply.type == type::string || reply.type == type::array ? vote::yes : vote::none;
}

bool settles_holder(const redis::votes& of) noexcept {
  try {
    std::vector<std::string> named;
    std::size_t missing = 0;
    for (const auto& outcome : of.outcomes) {
      if (!outcome) ++missing;
      if (!outcome || outcome->error) continue;
      if (auto holder = read_holder(outcome->reply).value) named.push_back(std::move(holder->field));
    }
    std::ptrdiff_t most = 0;
    for (const auto& field : named) most = std::max(most, std::count(named.begin(), named.end(), field));
    const auto needed = of.outcomes.size() / 2 + 1, agree = static_cast<std::size_t>(most);
    return agree >= needed || agree + missing < needed;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace holdfast::detail::vote_of
