// SPDX-License-Identifier: BSL-1.0
#include <holdfast/client.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

#include "api/arguments.hpp"
#include "api/make_client.hpp"
#include "api/make_topology.hpp"
#include "api/on_strand.hpp"
#include "base/asio_timers.hpp"
#include "base/random.hpp"
#include "config/settings.hpp"
#include "redis/sockets.hpp"

namespace holdfast {
namespace {

using detail::caller;
using detail::context_life;
using detail::core;
using detail::engine;

/// The name of a connection in CLIENT LIST: the client whose holds go over it, its process and host.
std::string connection_name(const std::string& chosen, std::string_view uuid) {
  if (chosen.empty()) return {};
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  auto name = chosen + ':' + std::string(uuid) + ':' + std::to_string(::getpid()) + '@' + host.data();
  std::replace_if(
      name.begin(), name.end(), [](char byte) { return byte <= 0x20 || byte >= 0x7f; }, '?');
  return name;
}

detail::server_list named(detail::server_list all, std::string_view uuid) {
  for (auto& server : all.servers) server.client_name = connection_name(server.client_name, uuid);
  all.discovered.client_name = connection_name(all.discovered.client_name, uuid);
  return all;
}

const detail::kind& fenced_of(const detail::core* core) noexcept {
  return core && core->takes_turns() ? detail::fenced_lock_in_turns : detail::fenced_lock;
}

/// The word by which a release notifies the waiters.
detail::publish_word word_of(const detail::settings& settings) {
  using detail::publish_word;
  if (settings.kind != detail::deployment::cluster) return publish_word::publish;
  switch (settings.values.cluster.pubsub) {
    case pubsub_mode::automatic: break;
    case pubsub_mode::classic: return publish_word::publish;
    case pubsub_mode::sharded: return publish_word::spublish;
    case pubsub_mode::both: return publish_word::both;
  }
  return publish_word::automatic;
}

detail::naming naming_of(const detail::settings& settings) {
  return {settings.values.key_prefix, word_of(settings), settings.kind == detail::deployment::cluster};
}

/// Real timers, sockets and randomness.
class real_environment final : public detail::client_environment {
 public:
  real_environment(const detail::direct_strand& strand, detail::timer_queue::action on_wake)
      : timers_(std::make_shared<detail::asio_timers>(strand, std::move(on_wake))) {}

  detail::timers& alarms() noexcept override { return *timers_; }
  redis::transport& network() noexcept override { return network_; }
  detail::random_source& random() noexcept override { return random_; }
  void close() override { timers_->close(); }

 private:
  redis::sockets network_;
  detail::system_random random_;
  const std::shared_ptr<detail::asio_timers> timers_;
};

void print_notice(const std::string& line) { std::fputs((line + '\n').c_str(), stderr); }

detail::environment_factory real_world() {
  return {std::shared_ptr<const detail::clock>(std::shared_ptr<void>(), &detail::system_clock()),
          [](const detail::direct_strand& strand, detail::timer_queue::action on_wake) {
            return std::make_unique<real_environment>(strand, std::move(on_wake));
          }};
}

/// The engine and its dependencies.
class client_parts {
 public:
  client_parts(std::shared_ptr<core> home, const detail::direct_strand& strand, detail::settings settings,
               const detail::environment_factory& world)
      : home_(std::move(home)), settings_(std::move(settings)),
        environment_(world.make(strand, [client = home_.get()] { client->catch_up(); })),
        fields_(detail::uuid{environment_->random().next(), environment_->random().next()}),
        servers_(detail::make_topology({strand, *world.time, environment_->alarms(), environment_->random(),
                                        environment_->network(), settings_.values.observer},
                                       named(settings_, fields_.client_uuid()), settings_.values,
                                       [this](const event& event) {
                                         if (settings_.values.observer) settings_.values.observer->on(event);
                                       })) {
    locks_.emplace(detail::environment{.time = *world.time,
                                       .alarms = environment_->alarms(),
                                       .servers = *servers_,
                                       .random = environment_->random(),
                                       .settings = settings_.values,
                                       .word = home_->naming().word},
                   home_, fields_, print_notice);
  }
  client_parts(const client_parts&) = delete;
  client_parts& operator=(const client_parts&) = delete;
  ~client_parts() {
    locks_.reset();
    home_->engine_has_ended();
    servers_->close();
    environment_->close();
  }

  engine& locks() noexcept { return *locks_; }

  void close(detail::nanoseconds grace, detail::function<void()> done) {
    locks_->close(grace, without_servers(std::move(done)));
  }
  void drain(detail::nanoseconds grace, detail::function<void()> done) {
    locks_->drain(grace, without_servers(std::move(done)));
  }
  /// At once: callers are answered.
  void abandon() {
    locks_->abandon();
    servers_->close();
    environment_->close();
  }

 private:
  detail::function<void()> without_servers(detail::function<void()> done) {
    return [this, done = std::move(done)] {
      servers_->close();
      done();
    };
  }

  const std::shared_ptr<core> home_;
  const detail::settings settings_;
  const std::unique_ptr<detail::client_environment> environment_;
  const detail::owner_fields fields_;
  const std::unique_ptr<detail::topology> servers_;
  std::optional<engine> locks_;  // uses all of the above
};

/// All of a client that belongs to its context.
struct strand_guest final : context_life::guest {
  explicit strand_guest(const asio::any_io_executor& executor) : strand(executor) {}

  void context_ended() override {
    if (inside) inside->abandon();
    inside.reset();
  }
  void forked() override {
    if (inside) inside->abandon();
  }

  const detail::direct_strand strand;
  std::optional<client_parts> inside;  // the strand's
};

class client_core final : public core {
 public:
  static std::shared_ptr<client_core> make(const asio::any_io_executor& executor, detail::settings settings,
                                           const detail::environment_factory& world) {
    auto& context = asio::query(executor, asio::execution::context);
    const auto life = context_life::of(executor);
    const context_life::visit here(*life);
    const auto core = std::make_shared<client_core>(life, naming_of(settings), settings.values.turns, world.time);
    auto mine = std::make_shared<strand_guest>(executor);
    mine->inside.emplace(core, mine->strand, std::move(settings), world);
    core->lives_by(mine->strand, mine->inside->locks());
    core->strand_guest_ = mine.get();
    life->add(std::move(mine));
    context_life::hear_of_forks(context);
    return core;
  }

  client_core(std::shared_ptr<context_life> life, detail::naming naming, bool turns,
              std::shared_ptr<const detail::clock> time)
      : core(std::move(life), std::move(naming), turns), time_(std::move(time)) {}
  ~client_core() override {
    if (!strand_guest_) return;
    const context_life::visit here(*life());
    if (here) life()->remove(*strand_guest_);
  }

  engine* locks() noexcept override { return strand_guest_->inside ? &strand_guest_->inside->locks() : nullptr; }

  void close(detail::nanoseconds grace, detail::function<void()> done) override {
    strand_guest_->inside->close(grace, std::move(done));
  }
  void drain(detail::nanoseconds grace, detail::function<void()> done) override {
    strand_guest_->inside->drain(grace, std::move(done));
  }

 private:
  void end_by_closing() override {
    if (!strand_guest_->inside) return;
    close(locks()->settings().command_timeout, [this] { end_later(); });
  }

  // In a handler of its own: a function of the engine is on the stack.
  void end_later() {
    try {
      enter_later([self = shared_from_this(), this] { strand_guest_->inside.reset(); });
    } catch (...) {
      // No memory: it stays, idle and closed, until its context ends.
    }
  }

  const std::shared_ptr<const detail::clock> time_;  // leases, which keep this object, read it
  strand_guest* strand_guest_ = nullptr;             // null until it is a guest
};

/// shutdown() and drain() succeed if the client has ended already. They fail if its context has ended, or in a child
/// process.
asio::awaitable<void> done_if_ended(std::shared_ptr<core> core, asio::awaitable<void> end) {
  try {
    co_await std::move(end);
  } catch (const error& failure) {
    if (failure.code() != errc::closed || !core || core->life()->elsewhere()) throw;
    const context_life::visit here(*core->life());
    if (!here || !core->closed()) throw;
  }
}

}  // namespace

client detail::make_client(const asio::any_io_executor& executor, settings settings, const environment_factory& world) {
  return access::make_client(client_core::make(executor, std::move(settings), world));
}

client::client(std::shared_ptr<detail::core> core) noexcept : core_(std::move(core)) {}

client::client(asio::any_io_executor executor, config config)
    : client(client_core::make(executor, detail::resolve(std::move(config)), real_world())) {}

client& client::operator=(client&& other) noexcept {
  if (this != &other) {
    if (core_) core_->close_in_background();
    core_ = std::move(other.core_);
  }
  return *this;
}

client::~client() {
  if (core_) core_->close_in_background();
}

asio::awaitable<void> client::connect() {
  auto probe = [](engine& locks, const std::shared_ptr<caller<void>>& to, const auto&) {
    const auto& kind = locks.several_primaries() ? detail::red_plain_lock : detail::plain_lock;
    locks.probe(kind, [to](const std::optional<detail::failure>& failed) { to->answer(failed); });
  };
  return detail::on_strand<void>(core_, std::move(probe), detail::refused_by(core_));
}

asio::awaitable<void> client::shutdown(milliseconds grace) {
  auto end = [grace, core = core_](engine&, const std::shared_ptr<caller<void>>& to, const auto&) {
    detail::check_grace(grace);
    core->close(grace, [to] { to->answer({}); });
  };
  return done_if_ended(core_, detail::on_strand<void>(core_, std::move(end)));
}

asio::awaitable<void> client::drain(milliseconds grace) {
  auto end = [grace, core = core_](engine&, const std::shared_ptr<caller<void>>& to, const auto&) {
    detail::check_grace(grace);
    core->drain(grace, [to] { to->answer({}); });
  };
  return done_if_ended(core_, detail::on_strand<void>(core_, std::move(end)));
}

mutex client::mutex(std::string_view name) const {
  return detail::access::make_mutex<holdfast::mutex>(core_, detail::plain_lock, name, std::nullopt);
}

mutex client::mutex(std::string_view name, holdfast::owner owner) const {
  return detail::access::make_mutex<holdfast::mutex>(core_, detail::plain_lock, name, owner);
}

fenced_mutex client::fenced_mutex(std::string_view name) const {
  return detail::access::make_mutex<holdfast::fenced_mutex>(core_, fenced_of(core_.get()), name, std::nullopt);
}

fenced_mutex client::fenced_mutex(std::string_view name, holdfast::owner owner) const {
  return detail::access::make_mutex<holdfast::fenced_mutex>(core_, fenced_of(core_.get()), name, owner);
}

const std::string& client::id() const noexcept {
  static const std::string none;
  return core_ ? core_->client_id() : none;
}

asio::any_io_executor client::get_executor() const noexcept {
  return core_ ? core_->executor() : asio::any_io_executor();
}

}  // namespace holdfast
