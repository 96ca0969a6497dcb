// SPDX-License-Identifier: BSL-1.0
#include "chaos/history.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace holdfast::chaos {

instant now() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return instant{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

history::history(const std::string& path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
  if (!file_) throw std::system_error(errno, std::generic_category(), path);
}

history::line::line(int file, std::string_view event)
    : file_(file), text_("{\"t\":" + std::to_string(now()) + ",\"ev\":\"") {
  text_.append(event) += '"';
}

// A history with a gap would be judged as if nothing had happened in it.
history::line::~line() {
  text_ += "}\n";
  if (::write(file_, text_.data(), text_.size()) != static_cast<ssize_t>(text_.size())) std::abort();
}

history::line& history::line::add(std::string_view key, std::string_view text) {
  return add_raw(key, '"' + std::string(text) + '"');
}

history::line& history::line::add_raw(std::string_view key, std::string_view value) {
  text_.append(",\"").append(key).append("\":").append(value);
  return *this;
}

}  // namespace holdfast::chaos
