// SPDX-License-Identifier: BSL-1.0
#include "support/proxy_stream.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::test {

using namespace std::chrono_literals;

// How many bytes may go now; 0 with result.again set: later.
std::size_t proxy_stream::allowance(int fd, clock::time_point now, const pacing& pace, progress& result) {
  auto most = pieces_.front().bytes.size();
  if (pace.split > 0) {
    // On a unix socket this is what the peer has not read: each piece is read before the next one is sent.
    int unread = 0;
    if (::ioctl(fd, SIOCOUTQ, &unread) == 0 && unread > 0) {
      result.again = now + 100us;
      return 0;
    }
    most = std::min(most, pace.split);
  }
  if (pace.bytes_per_second > 0) {
    if (now < throttled_until_) {
      result.again = throttled_until_;
      return 0;
    }
    most = std::min(most, std::max<std::size_t>(1, pace.bytes_per_second / 1000));
    throttled_until_ = now + std::chrono::nanoseconds(1'000'000'000 * most / pace.bytes_per_second);
  }
  return most;
}

proxy_stream::progress proxy_stream::write_to(int fd, clock::time_point now, const pacing& pace) {
  progress result;
  if (pace.held) return result;
  while (!pieces_.empty()) {
    if (free_ && *free_ == 0) return result;
    auto& next = pieces_.front();
    if (next.due > now) {
      result.again = next.due;
      return result;
    }
    while (!next.bytes.empty()) {
      const auto most = allowance(fd, now, pace, result);
      if (most == 0) return result;
      const auto sent = ::send(fd, next.bytes.data(), most, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      result.blocked = sent < 0 && errno == EAGAIN;
      result.ended = sent < 0 && !result.blocked;
      if (sent < 0) return result;
      result.sent += static_cast<std::uint64_t>(sent);
      ++result.pieces;
      next.bytes.erase(0, static_cast<std::size_t>(sent));
    }
    if (next.then_cut) {
      result.ended = true;
      return result;
    }
    pieces_.pop_front();
    if (free_) --*free_;
  }
  result.ended = ended_ && !free_;
  return result;
}

}  // namespace holdfast::test
