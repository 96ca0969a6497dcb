// SPDX-License-Identifier: BSL-1.0
#include "api/arguments.hpp"

#include <string>

#include <holdfast/error.hpp>

#include "base/escape.hpp"
#include "config/settings.hpp"
#include "protocol/election/election_lock.hpp"
#include "protocol/keys.hpp"
#include "protocol/note/note.hpp"
#include "sync/engine.hpp"

namespace holdfast::detail {
namespace {

std::string ms(milliseconds duration) { return std::to_string(duration.count()) + " ms"; }

[[noreturn]] void refuse_ttl(const char* text, milliseconds given, milliseconds least, milliseconds most) {
  throw error(errc::invalid_ttl,
              std::string(text) + " of " + ms(given) + " is not in " + ms(least) + " to " + ms(most));
}

// A restarted primary of a red_lock has no vote until its longest_ttl is over: a longer TTL could outlive that.
void check_ttl(const config& config, const char* text, milliseconds given, milliseconds least) {
  const auto most = config.red_lock.longest_ttl == milliseconds::zero() ? longest_ttl : config.red_lock.longest_ttl;
  if (given < least || given > most) refuse_ttl(text, given, least, most);
}

void check_replicas(const config& config, unsigned wanted) {
  if (wanted > most_replicas)
    throw error(errc::invalid_config,
                "min_replicas of " + std::to_string(wanted) + " is not in 0 to " + std::to_string(most_replicas));
  if (wanted > 0 && !config.red_lock.primaries.empty())
    throw error(errc::invalid_config, "min_replicas is for a primary with replicas: a red_lock is at a majority");
}

}  // namespace

terms resolve_terms(const config& config, const lock_options& asked) {
  const auto ttl = asked.ttl.value_or(config.ttl);
  const bool renew = asked.renew.value_or(!asked.ttl.has_value());
  const auto min_replicas = asked.min_replicas.value_or(config.min_replicas);
  check_replicas(config, min_replicas);
  const auto least = renew ? shortest_renewed_ttl : shortest_ttl;
  check_ttl(config, renew ? "a renewed ttl" : "a ttl", ttl, least);
  if (asked.max_hold) {
    if (!renew) throw error(errc::invalid_ttl, "max_hold is for renewed leases: without renewal the ttl is the limit");
    if (*asked.max_hold < milliseconds(1) || *asked.max_hold > longest_ttl)
      refuse_ttl("a max_hold", *asked.max_hold, milliseconds(1), longest_ttl);
  }
  terms terms{std::chrono::duration_cast<terms::duration>(ttl), renew, static_cast<std::uint8_t>(min_replicas), {}};
  if (asked.max_hold) terms.max_hold = std::chrono::duration_cast<terms::duration>(*asked.max_hold);
  return terms;
}

void check_renew_ttl(const config& config, milliseconds ttl) {
  if (ttl != milliseconds::zero()) check_ttl(config, "a ttl", ttl, shortest_ttl);
}

void check_name(const lock_keys& keys) {
  switch (keys.fault) {
    case name_fault::none: return;
    case name_fault::empty: throw error(errc::invalid_name, "the name is empty");
    case name_fault::too_long:
      throw error(errc::invalid_name, "the name has " + std::to_string(keys.name.size()) + " bytes, more than 65536");
    case name_fault::splits_slots:
      throw error(errc::invalid_name,
                  "the name " + in_quotes(keys.lock) +
                      " does not fit a cluster: it may have no brace, or its first '{' must be followed "
                      "by at least one byte and a '}'");
    case name_fault::has_a_brace:
      throw error(errc::invalid_name, "the name " + in_quotes(keys.lock) +
                                          " does not fit a cluster: the name of a latch may have no brace there");
  }
}

void check_number(const char* text, std::uint64_t given, std::uint64_t most) {
  if (given >= 1 && given <= most) return;
  throw error(errc::invalid_argument,
              std::string(text) + " of " + std::to_string(given) + " is not in 1 to " + std::to_string(most));
}

void check_value(std::string_view value) {
  if (value.size() <= longest_value) return;
  throw error(errc::invalid_argument, "the value has " + std::to_string(value.size()) + " bytes, more than 65536");
}

void check_lock(const engine& engine, const lock_keys& keys) {
  check_name(keys);
  if (keys.of.semaphore.make)
    check_number("a number of permits", static_cast<const permit_keys&>(keys).total, most_permits);
  if (&keys.of == &election_lock) check_value(static_cast<const election_keys&>(keys).value);
  if (keys.of.voted == engine.several_primaries()) return;
  throw error(errc::invalid_config, keys.of.voted ? "a red_lock needs a client with several primaries"
                                                  : "a client with several primaries has no other lock than red_lock");
}

void check_note(std::string_view note) {
  if (note.size() <= longest_note) return;
  throw error(errc::invalid_name, "the note has " + std::to_string(note.size()) + " bytes, more than 200");
}

void check_wait(milliseconds wait) {
  if (wait < milliseconds::zero()) throw error(errc::invalid_wait, "a wait of " + ms(wait) + " is negative");
}

void check_grace(milliseconds grace) {
  if (grace < milliseconds::zero() || grace > longest_ttl)
    throw error(errc::invalid_wait, "a grace of " + ms(grace) + " is not in 0 to " + ms(longest_ttl));
}

}  // namespace holdfast::detail
