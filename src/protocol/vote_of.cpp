// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote_of.hpp"

#include "protocol/replies.hpp"

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

}  // namespace holdfast::detail::vote_of
