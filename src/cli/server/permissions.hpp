// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/server/lock_facts.hpp"
#include "cli/server/session.hpp"
#include "config/settings.hpp"

namespace holdfast::cli {

/// The locks that a user may take, and the server's version.
struct permission_demand {
  std::string prefix;  // of the names
  bool fenced = false, simple = false, fair = false, permits = false, shared = false, latch = false;
  bool election = false, notes = false;
  bool red = false, cluster = false, replicas = false;
  bool pushes = true;     // servers push changes of locks
  bool classic = false;   // a cluster whose releases are published by PUBLISH alone
  bool selects = false;   // a database other than 0
  bool braces = false;    // names may have a '{'
  bool operates = false;  // list, inspect, watch and doctor as well
  int version = 700;      // 100 * major + minor
};
permission_demand demand_of(const detail::settings& settings);
/// "7.0.15" is 700; 0: it is no version.
int version_number(std::string_view text) noexcept;

/// Pure: the least rules of ACL SETUSER for a user of the servers, without name and password.
words least_rules(const permission_demand& demand);
/// The same for a user of the sentinels.
words sentinel_rules();
/// The channels with this stem of `channels`, as the rules name them. A subscription to such a pattern needs the same
/// text in the rules.
words channel_patterns(std::string_view stem, std::string_view prefix, bool braces);

/// One command that the scripts or the client send, with arguments that the rules must cover.
///
/// Decision: doctor asks about each of them. ACL DRYRUN of EVALSHA says yes, and the script then fails at its first
/// command that is not granted.
struct permission {
  std::string rule;  // "hset", "client|setname"
  words example;
};
std::vector<permission> permissions_of(const permission_demand& demand);

}  // namespace holdfast::cli
