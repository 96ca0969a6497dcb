// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::chaos {

/// A command line of pairs, "--name value".
class arguments {
 public:
  arguments(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string_view name(argv[i]);
      if (!name.starts_with("--") || i + 1 == argc)
        throw std::runtime_error("expected --name value, not " + std::string(name));
      values_[std::string(name.substr(2))] = argv[i + 1];
    }
  }

  /// Throws when it is missing.
  const std::string& text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::runtime_error("--" + name + " is missing");
    return found->second;
  }
  /// Of several, with a blank between them.
  std::vector<std::string> list(const std::string& name) const {
    std::istringstream words(text(name));
    return {std::istream_iterator<std::string>(words), {}};
  }
  long long number(const std::string& name) const { return std::stoll(text(name)); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace holdfast::chaos
