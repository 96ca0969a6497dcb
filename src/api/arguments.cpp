// SPDX-License-Identifier: BSL-1.0
#include "api/arguments.hpp"

#include <cstddef>
#include <string>

#include <holdfast/error.hpp>

namespace holdfast::detail {
namespace {

constexpr std::size_t longest_name = 64 * 1024;

std::string ms(milliseconds d) { return std::to_string(d.count()) + " ms"; }

[[noreturn]] void refuse_ttl(const char* what, milliseconds given, milliseconds least) {
  throw error(errc::invalid_ttl,
              std::string(what) + " of " + ms(given) + " is not in " + ms(least) + " to " + ms(longest_ttl));
}

}  // namespace

terms resolve_terms(const config& c, const lock_options& asked) {
  terms t{asked.ttl.value_or(c.ttl), asked.renew.value_or(!asked.ttl.has_value()), asked.max_hold};
  const auto least = t.renew ? shortest_renewed_ttl : shortest_ttl;
  if (t.ttl < least || t.ttl > longest_ttl) refuse_ttl(t.renew ? "a renewed ttl" : "a ttl", t.ttl, least);
  if (t.max_hold) {
    if (!t.renew)
      throw error(errc::invalid_ttl, "max_hold is for renewed leases: without renewal the ttl is the limit");
    if (*t.max_hold < milliseconds(1) || *t.max_hold > longest_ttl)
      refuse_ttl("a max_hold", *t.max_hold, milliseconds(1));
  }
  return t;
}

void check_renew_ttl(milliseconds ttl) {
  if (ttl == milliseconds::zero()) return;
  if (ttl < shortest_ttl || ttl > longest_ttl) refuse_ttl("a ttl", ttl, shortest_ttl);
}

void check_name(std::string_view name) {
  if (name.empty()) throw error(errc::invalid_name, "the name is empty");
  if (name.size() > longest_name)
    throw error(errc::invalid_name, "the name has " + std::to_string(name.size()) + " bytes, more than 65536");
}

void check_wait(milliseconds wait) {
  if (wait < milliseconds::zero()) throw error(errc::invalid_wait, "a wait of " + ms(wait) + " is negative");
}

void check_grace(milliseconds grace) {
  if (grace < milliseconds::zero() || grace > longest_ttl)
    throw error(errc::invalid_wait, "a grace of " + ms(grace) + " is not in 0 to " + ms(longest_ttl));
}

}  // namespace holdfast::detail
