// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <string>

#include "config/url.hpp"

namespace holdfast::demo {

/// A unix socket that leads to a server, and a network that can go silent on the way. Runs in a thread of its own.
/// Any thread may call it; what it does is in force when the call returns.
class gate {
 public:
  gate(std::string path, holdfast::detail::url_parts server);
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  ~gate();

  const std::string& path() const noexcept;
  void silence();  ///< bytes disappear both ways; connections stay open, and new ones can be made
  void mend();     ///< ends it: connections that may have lost bytes are closed, new ones pass

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::demo
