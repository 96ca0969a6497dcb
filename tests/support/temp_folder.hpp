// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>

namespace holdfast::test {

/// A new folder of mode 0700 under $TMPDIR, or under /tmp where that is too long for the path of a unix socket.
std::string make_temp_folder(std::string_view prefix);
void remove_folder(const std::string& path) noexcept;

/// A folder that is removed with all in it at the end of the scope.
class temp_folder {
 public:
  explicit temp_folder(std::string_view prefix = "holdfast-test-") : path_(make_temp_folder(prefix)) {}
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;
  ~temp_folder() { remove_folder(path_); }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace holdfast::test
