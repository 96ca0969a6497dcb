// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "timeline.hpp"

namespace holdfast::demo {

/// A counter that nothing but the lock protects: a file whose last line holds the number. Read it, let others run,
/// append the next one; two who are inside at once write the same number.
class witness {
 public:
  struct entry {
    long long number = 0;
    std::string who;
    steady_clock::time_point entered, left;

    std::string process() const { return who.substr(0, who.find('.')); }
  };

  explicit witness(std::string path) : path_(std::move(path)) {}

  long long last_number() const;
  void append(long long number, std::string_view who, steady_clock::time_point entered) const;
  std::vector<entry> read() const;

 private:
  std::string path_;
};

}  // namespace holdfast::demo
