// SPDX-License-Identifier: BSL-1.0
#include "support/temp_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace holdfast::test {

std::string make_temp_folder(std::string_view prefix) {
  const char* given = std::getenv("TMPDIR");
  std::string parent = given != nullptr && *given != 0 ? given : "/tmp";
  if (parent.size() + prefix.size() > 80) parent = "/tmp";  // sun_path has 108 bytes
  auto path = parent + "/" + std::string(prefix) + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + path);
  return path;
}

void remove_folder(const std::string& path) noexcept {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove_all(path, ignored);
}

}  // namespace holdfast::test
