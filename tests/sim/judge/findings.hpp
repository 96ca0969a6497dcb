// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <stdexcept>
#include <string>

namespace holdfast::sim {

/// A promise that was broken.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The first violation of a seed. It may be found in the middle of the library, through which no exception may pass:
/// decide() throws it later.
class findings {
 public:
  void accuse(const std::string& whom, const std::string& deed) {
    if (first_.empty()) first_ = whom + ' ' + deed;
  }
  void decide() const {
    if (!first_.empty()) throw violation(first_);
  }

 private:
  std::string first_;
};

}  // namespace holdfast::sim
