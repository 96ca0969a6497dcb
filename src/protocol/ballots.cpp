// SPDX-License-Identifier: BSL-1.0
#include "protocol/ballots.hpp"

#include "protocol/replies.hpp"

namespace holdfast::detail::ballots {
namespace {

using type = redis::reply::kind;

ballot yes_if(bool yes) { return yes ? ballot::yes : ballot::no; }

}  // namespace

ballot acquire(const redis::reply& r) {
  if (r.type == type::nil) return ballot::yes;
  return r.type == type::integer ? ballot::no : ballot::none;
}

ballot flag(const redis::reply& r) {
  return r.type == type::integer && (r.integer == 0 || r.integer == 1) ? yes_if(r.integer == 1) : ballot::none;
}

ballot sole_renewal(const redis::reply& r) {
  const auto said = read_renew(r, 1);
  return said.failed ? ballot::none : yes_if(said.value.front() == renewal_answer::confirmed);
}

ballot release(const redis::reply& r) { return r.type == type::nil ? ballot::no : force_release(r); }

ballot force_release(const redis::reply& r) {
  return r.type == type::integer || r.type == type::string ? ballot::yes : ballot::none;
}

ballot ttl(const redis::reply& r) { return r.type == type::integer ? yes_if(r.integer >= -1) : ballot::none; }

ballot something(const redis::reply& r) {
  if (r.type == type::nil) return ballot::no;
  return r.type == type::string || r.type == type::array ? ballot::yes : ballot::none;
}

}  // namespace holdfast::detail::ballots
