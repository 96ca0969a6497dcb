// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <vector>

namespace holdfast::test {

/// A name that resolves to these addresses in this process, in this order, until the end of the scope. One object for a
/// name at a time; any thread.
class host_name {
 public:
  host_name(std::string name, std::vector<std::string> addresses);
  host_name(const host_name&) = delete;
  host_name& operator=(const host_name&) = delete;
  ~host_name();

  void move_to(std::vector<std::string> addresses);

 private:
  std::string name_;
};

}  // namespace holdfast::test
