// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "support/temp_folder.hpp"

namespace holdfast::test {

/// The wall clock of a server that is started with environment(): runs as ours does, and is stepped by the test.
class stepped_clock {
 public:
  explicit stepped_clock(std::string shim) : shim_(std::move(shim)) { step_to({}); }

  std::vector<std::string> environment() const { return {"LD_PRELOAD=" + shim_, "HOLDFAST_CLOCK_OFFSET=" + file_}; }
  /// So far from ours.
  void step_to(std::chrono::milliseconds offset) {
    const std::int64_t count = offset.count();
    std::fstream file(file_,
                      opened_ ? std::ios::in | std::ios::out | std::ios::binary : std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(&count), sizeof count);
    opened_ = true;
  }

 private:
  std::string shim_;
  temp_folder folder_;
  std::string file_ = folder_.path() + "/offset";
  bool opened_ = false;  // mapped by the server from then on: not truncated
};

}  // namespace holdfast::test
