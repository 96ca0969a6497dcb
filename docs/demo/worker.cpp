// SPDX-License-Identifier: BSL-1.0
#include "worker.hpp"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <iostream>
#include <utility>

namespace holdfast::demo {

using namespace std::chrono_literals;

namespace {

// Tells the reader of background events.
class narrator final : public holdfast::observer {
 public:
  explicit narrator(std::function<void(std::string_view event, std::string text)> tell) : tell_(std::move(tell)) {}

  void on(const holdfast::event& e) noexcept override {
    using kind = holdfast::event_kind;
    switch (e.kind) {
      case kind::suspended: return tell_("suspended", "observer: suspended, the hold cannot be confirmed at present");
      case kind::restored: return tell_("restored", "observer: restored, the hold is confirmed");
      case kind::primary_changed: return tell_("changed", "observer: primary_changed");
      case kind::lost: return tell_("lost", "observer: lost, " + in_ms(e.held) + " after the grant");
      case kind::release_failed: return tell_("release_failed", "observer: release_failed, " + e.reason.message());
      case kind::outage: return tell_("outage", {});
      default: return;
    }
  }

 private:
  std::function<void(std::string_view, std::string)> tell_;
};

// Short times, for a demonstration: everything is on this machine.
holdfast::config config_of(const job& what, const std::string& url) {
  holdfast::config result;
  result.url = url;
  result.client_name = "holdfast-demo";
  result.key_prefix = what.prefix;
  result.ttl = what.ttl;
  result.drift = what.drift;
  result.min_replicas = what.fails_over ? 1 : 0;
  result.connect_timeout = 500ms;
  result.reconnect_cap = 100ms;
  return result;
}

}  // namespace

worker::worker(job what, std::string url)
    : job_(std::move(what)), url_(std::move(url)), in_(io_, ::dup(STDIN_FILENO)),
      witness_(job_.folder + std::string(witness_name)), go_on_(io_, asio::steady_timer::time_point::max()),
      all_done_(io_, asio::steady_timer::time_point::max()) {
  auto settings = config_of(job_, url_);
  settings.observer = std::make_shared<narrator>([this](std::string_view event, std::string text) {
    report(job_.actor, event, text, event == "suspended" || event == "restored");
  });
  redis_ = std::make_unique<holdfast::client>(io_.get_executor(), settings);
}

void worker::report(std::string_view who, std::string_view event, std::string_view text, bool holds) const {
  const news one{steady_clock::now(), std::string(who), std::string(event), std::string(text), holds};
  const auto line = one.line();
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(1);  // nobody listens any more
}

asio::awaitable<std::string> worker::next_order() {
  const auto length = co_await asio::async_read_until(in_, asio::dynamic_buffer(input_), '\n', asio::use_awaitable);
  auto order = input_.substr(0, length - 1);
  input_.erase(0, length);
  co_return order;
}

asio::awaitable<void> worker::serve() {
  co_await redis_->connect();
  report(job_.actor, "ready");
  switch (job_.what) {
    case job::role::contend: co_await contend_role(); break;
    case job::role::hold: co_await hold_role(); break;
    case job::role::guard: co_await guard_role(); break;
  }
  leases_.clear();
  co_await redis_->shutdown(2s);
}

void worker::run() {
  auto failed = [this](std::exception_ptr why) {
    if (!why) return;
    try {
      std::rethrow_exception(why);
    } catch (const std::exception& e) {
      report(job_.actor, "failed", std::string("failed: ") + e.what());
      ::_exit(1);
    }
  };
  asio::co_spawn(io_, serve(), failed);
  io_.run();
}

int run_worker(const job& what) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);  // the demo ends its workers itself
  std::string url;
  std::getline(std::cin, url);
  worker(what, url).run();
  return 0;
}

}  // namespace holdfast::demo
