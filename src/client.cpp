// SPDX-License-Identifier: BSL-1.0
#include <holdfast/client.hpp>

#include <utility>

#include "base/asio_timers.hpp"
#include "base/random.hpp"
#include "context_end.hpp"
#include "settings.hpp"
#include "sync/operation.hpp"
#include "topology/standalone.hpp"

namespace holdfast {
namespace {

using detail::caller;
using detail::core;

/// The engine with a real clock, real timers, a real server and real randomness around it.
class client_core final : public core {
 public:
  static std::shared_ptr<client_core> make(const asio::any_io_executor& executor, detail::settings s) {
    const std::shared_ptr<client_core> c(new client_core(executor, std::move(s)), end_on_strand);
    c->engine_.emplace(
        detail::surroundings{detail::system_clock(), *c->timers_, c->servers_, c->random_, c->settings_.values}, c);
    asio::use_service<detail::context_end>(asio::query(executor, asio::execution::context)).add(c);
    return c;
  }

  client_core(const asio::any_io_executor& executor, detail::settings s)
      : core(asio::make_strand(executor)), settings_(std::move(s)),
        timers_(std::make_shared<detail::asio_timers>(strand())),
        servers_({strand(), detail::system_clock(), *timers_, random_}, settings_.server,
                 settings_.values.command_timeout, [this](const event& e) { report(e); }) {}

  ~client_core() override {
    engine_.reset();
    servers_.close();
    timers_->close();
  }

  detail::engine& locks() noexcept override { return *engine_; }

  void close(detail::nanoseconds grace, detail::function<void()> done) override {
    engine_->close(grace, [this, done = std::move(done)] {
      servers_.close();
      done();
    });
  }

  void abandon() override {
    engine_->abandon();
    servers_.close();
    timers_->close();
  }

 private:
  // Whoever lets go of it last, timers and sockets are the strand's.
  static void end_on_strand(client_core* c) noexcept {
    std::unique_ptr<client_core> last(c);
    const auto strand = c->strand();
    if (strand.running_in_this_thread()) return;
    try {
      asio::post(strand, [last = std::move(last)] {});
    } catch (...) {
      // No memory for it: ended where it is.
    }
  }

  void report(const event& e) const {
    if (settings_.values.observer) settings_.values.observer->on(e);
  }

  const detail::settings settings_;
  detail::system_random random_;
  const std::shared_ptr<detail::asio_timers> timers_;
  detail::standalone servers_;
  std::optional<detail::engine> engine_;  // last: it uses all of the above
};

void close_in_background(const std::shared_ptr<core>& c) noexcept {
  if (!c) return;
  c->locks().closed_flag()->store(true, std::memory_order_release);
  try {
    asio::post(c->strand(), [c] { c->close(c->locks().settings().command_timeout, [c] {}); });
  } catch (...) {
    // No memory for it: the leases know that they are over, and Redis ends them with their TTL.
  }
}

}  // namespace

client::client(asio::any_io_executor executor, config c)
    : core_(client_core::make(executor, detail::resolve(std::move(c)))) {}

client& client::operator=(client&& other) noexcept {
  if (this != &other) {
    close_in_background(core_);
    core_ = std::move(other.core_);
  }
  return *this;
}

client::~client() { close_in_background(core_); }

asio::awaitable<void> client::connect() {
  return detail::on_strand<void>(core_, [](core& c, const std::shared_ptr<caller<void>>& to, const auto&) {
    c.locks().probe([to](error_code e, const std::string& detail) { to->answer(e, detail); });
  });
}

asio::awaitable<void> client::shutdown(milliseconds grace) {
  return detail::on_strand<void>(core_, [grace](core& c, const std::shared_ptr<caller<void>>& to, const auto&) {
    detail::check_grace(grace);
    c.close(grace, [to, keep = c.shared_from_this()] { to->answer({}, {}); });
  });
}

mutex client::mutex(std::string_view name) const {
  return detail::access::make_mutex<holdfast::mutex>(core_, name, std::nullopt);
}

mutex client::mutex(std::string_view name, holdfast::owner who) const {
  return detail::access::make_mutex<holdfast::mutex>(core_, name, who);
}

fenced_mutex client::fenced_mutex(std::string_view name) const {
  return detail::access::make_mutex<holdfast::fenced_mutex>(core_, name, std::nullopt);
}

fenced_mutex client::fenced_mutex(std::string_view name, holdfast::owner who) const {
  return detail::access::make_mutex<holdfast::fenced_mutex>(core_, name, who);
}

asio::any_io_executor client::get_executor() const noexcept {
  return core_ ? core_->strand().get_inner_executor() : asio::any_io_executor();
}

}  // namespace holdfast
