// SPDX-License-Identifier: BSL-1.0
#include "sync/ask_twice.hpp"

#include <memory>
#include <utility>

namespace holdfast::detail {
namespace {

class question : public std::enable_shared_from_this<question> {
 public:
  question(const surroundings& around, nanoseconds timeout, copy_sender send, topology::handler done)
      : around_(around), timeout_(timeout), send_(std::move(send)), done_(std::move(done)) {}

  void ask(nanoseconds left) {
    send_(left, [self = shared_from_this()](const outcome& o) { self->answered(o); });
  }

 private:
  void answered(const outcome& o) {
    const auto left = timeout_ - (around_.now() - o.sent);
    if (o.error == errc::unconfirmed && left > nanoseconds::zero() && !std::exchange(again_, true)) return ask(left);
    done_(o);
  }

  const surroundings& around_;
  const nanoseconds timeout_;
  const copy_sender send_;
  const topology::handler done_;
  bool again_ = false;
};

}  // namespace

void ask_twice(const surroundings& around, nanoseconds timeout, copy_sender send, topology::handler done) {
  std::make_shared<question>(around, timeout, std::move(send), std::move(done))->ask(timeout);
}

}  // namespace holdfast::detail
