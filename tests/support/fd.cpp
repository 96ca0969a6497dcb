// SPDX-License-Identifier: BSL-1.0
#include "support/fd.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::test {

using std::chrono::steady_clock;

unique_fd& unique_fd::operator=(unique_fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int unique_fd::release() noexcept { return std::exchange(fd_, -1); }

void unique_fd::reset() noexcept {
  if (const int fd = release(); fd >= 0) ::close(fd);
}

void throw_errno(const std::string& text) { throw std::system_error(errno, std::generic_category(), text); }

bool wait_ready(int fd, short events, steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<long long>(left, 0, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw_errno("poll");
    if (ready == 0 && left <= 1'000'000) return false;
  }
}

}  // namespace holdfast::test
