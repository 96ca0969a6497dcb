// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::sim {

/// How often each fault, script reply, error path and event was met.
class coverage {
 public:
  void hit(std::string_view what) { ++count_of(what); }
  void add(const coverage& other);
  /// What every run of many seeds must have met, and has not.
  std::string missing() const;
  /// What was met although the list of what there is to meet does not have it: the list is complete.
  std::string unlisted() const;
  void print(std::ostream&) const;

 private:
  std::uint64_t& count_of(std::string_view what);
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace holdfast::sim
