// SPDX-License-Identifier: BSL-1.0
// A process that has no file descriptor left.
#include <fcntl.h>
#include <sys/resource.h>

#include "integration/world.hpp"
#include "support/sanitized.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

/// From its making to its end no descriptor can be had.
class no_descriptors {
 public:
  no_descriptors() {
    const unique_fd lowest_free(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest_free.get());
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) throw std::system_error(errno, std::generic_category(), "setrlimit");
  }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;
  ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("without a file descriptor to be had calls are unreachable and a lock waits for one without spinning") {
  if (address_sanitized)
    skip("UBSan looks at a vptr through a pipe, and takes an object for none when it cannot have one");
  world w;
  auto redis = w.make();
  std::optional<lease> got;
  {
    const no_descriptors exhausted;
    CHECK(w.code_of(redis.mutex("m").try_lock_for(300ms)) == errc::unreachable);
    const auto heard = w.heard->all();
    CHECK(std::any_of(heard.begin(), heard.end(), [](const auto& e) {
      return e.what == kind::outage && e.detail.find("Too many open files") != std::string::npos;
    }));
    asio::co_spawn(w.io, redis.mutex("m").lock(), [&](std::exception_ptr, lease l) { got.emplace(std::move(l)); });
    w.io.restart();
    const auto turns = w.io.run_for(1s);
    CHECK(turns < 1000);
    CHECK_FALSE(got);
  }
  w.until([&] { return got.has_value(); });
  CHECK(got->held());
}
