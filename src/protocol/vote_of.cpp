// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote_of.hpp"

#include "protocol/replies.hpp"

namespace holdfast::detail::vote_of {
namespace {

using type = redis::reply::kind;

vote yes_if(bool yes) { return yes ? vote::yes : vote::no; }

}  // namespace

vote acquire(const redis::reply& r) {
  if (r.type == type::nil) return vote::yes;
  return r.type == type::integer ? vote::no : vote::none;
}

vote flag(const redis::reply& r) {
  return r.type == type::integer && (r.integer == 0 || r.integer == 1) ? yes_if(r.integer == 1) : vote::none;
}

vote sole_renewal(const redis::reply& r) {
  const auto said = read_renew(r, 1);
  return said.failed ? vote::none : yes_if(said.value.front() == renewal_answer::confirmed);
}

vote release(const redis::reply& r) { return r.type == type::nil ? vote::no : force_release(r); }

vote force_release(const redis::reply& r) {
  return r.type == type::integer || r.type == type::string ? vote::yes : vote::none;
}

vote ttl(const redis::reply& r) { return r.type == type::integer ? yes_if(r.integer >= -1) : vote::none; }

vote something(const redis::reply& r) {
  if (r.type == type::nil) return vote::no;
  return r.type == type::string || r.type == type::array ? vote::yes : vote::none;
}

}  // namespace holdfast::detail::vote_of
