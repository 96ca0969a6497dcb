// SPDX-License-Identifier: BSL-1.0
#include "testing/stage.hpp"

#include <boost/asio/post.hpp>

#include <stdexcept>
#include <utility>

#include "testing/sim/virtual_transport.hpp"
#include "testing/virtual_timers.hpp"

namespace holdfast::testing {
namespace {

/// Sets the flag while it lives.
class set_for {
 public:
  explicit set_for(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  set_for(const set_for&) = delete;
  set_for& operator=(const set_for&) = delete;
  ~set_for() { flag_ = before_; }

 private:
  bool& flag_;
  const bool before_;
};

}  // namespace

/// The dependencies of one client.
class stage::virtual_environment final : public detail::client_environment {
 public:
  virtual_environment(std::shared_ptr<stage> on, std::deque<sim::route>& ways, std::uint64_t seed,
                      const sim::strand& at, detail::timer_queue::action on_wake)
      : stage_(std::move(on)), home_(std::make_shared<sim::home>(at)), network_(ways, home_), random_(seed),
        timers_(std::make_shared<virtual_timers>(stage_->plan_, home_, std::move(on_wake))) {
    stage_->plan_.add(*timers_);
    stage_->plan_.remove(stage_->handlers_);
    stage_->plan_.add(stage_->handlers_);
  }
  ~virtual_environment() override { close(); }

  detail::timers& alarms() noexcept override { return *timers_; }
  redis::transport& network() noexcept override { return network_; }
  detail::random_source& random() noexcept override { return random_; }
  void close() override {
    stage_->plan_.remove(*timers_);
    timers_->close();
    home_->leave();
  }

 private:
  const std::shared_ptr<stage> stage_;
  const sim::home_ptr home_;
  sim::transport network_;
  sim::seeded_random random_;
  const std::shared_ptr<virtual_timers> timers_;
};

/// Notes the holds of a client, and forwards to the test's own observer.
class stage::stage_observer final : public observer {
 public:
  stage_observer(std::weak_ptr<stage> on, std::shared_ptr<observer> next)
      : stage_(std::move(on)), next_(std::move(next)) {}
  void on(const event& event) noexcept override {
    if (const auto open_stage = stage_.lock()) open_stage->held_.hear(event, open_stage->now());
    if (next_) next_->on(event);
  }
  void measured(const measurement& measurement) noexcept override {
    if (next_) next_->measured(measurement);
  }

 private:
  const std::weak_ptr<stage> stage_;
  const std::shared_ptr<observer> next_;
};

stage::stage(context where, std::size_t machines) : context_(std::move(where)) {
  plan_.add(handlers_);
  plan_.on_new = [this](time_point when) { hear_of(when); };
  for (unsigned n = 0; n < machines; ++n)
    machines_.emplace_back(plan_, 1.0, std::string(1, static_cast<char>('A' + n)), n);
}

void stage::check_is_here(const asio::any_io_executor& other) const {
  if (!other || &asio::query(other, asio::execution::context) != &asio::query(executor(), asio::execution::context))
    throw std::invalid_argument(
        error_text("a client runs on the io_context of its server, and this executor is another's"));
}

void stage::check_outside(const char* act) const {
  if (context_.inside())
    throw std::logic_error(
        error_text(std::string(act) + " inside of a handler of the io_context, which it would have to run"));
}

client stage::make_client(const asio::any_io_executor& executor, config config, sim::server& machine) {
  check_is_here(executor);
  config.observer = std::make_shared<stage_observer>(weak_from_this(), std::move(config.observer));
  auto settings = detail::resolve(std::move(config));
  if (settings.kind != detail::deployment::one_server || settings.values.min_replicas != 0)
    throw error(
        make_error_code(errc::invalid_config),
        error_text("there are no sentinels, no cluster and no replicas (docs/guide/testing.md says why), and the "
                   "primaries of a red_lock are testing::primaries"));
  return connect(executor, std::move(settings), {&machine});
}

client stage::make_client(const asio::any_io_executor& executor, config config) {
  check_is_here(executor);
  config.observer = std::make_shared<stage_observer>(weak_from_this(), std::move(config.observer));
  if (config.red_lock.primaries.empty())
    for (const auto& server : machines_) config.red_lock.primaries.push_back("redis://" + server.at().host);
  auto settings = detail::resolve(std::move(config));
  if (settings.servers.size() != machines_.size())
    throw error(make_error_code(errc::invalid_config),
                error_text("the config has " + std::to_string(settings.servers.size()) + " primaries, and the test " +
                           std::to_string(machines_.size())));
  std::vector<sim::server*> to;
  for (auto& server : machines_) to.push_back(&server);
  return connect(executor, std::move(settings), to);
}

client stage::connect(const asio::any_io_executor& executor, detail::settings settings,
                      const std::vector<sim::server*>& to) {
  auto& member = members_.emplace_back();
  const auto number = members_.size();
  for (std::size_t n = 0; n < to.size(); ++n) {
    auto& node = settings.servers[n];
    node.at = to[n]->at();
    node.login = {};
    node.use_tls = false;
    node.db = 0;
    member.ways.emplace_back(plan_, *to[n], random_, log_, "client" + std::to_string(number));
  }
  const auto make = [self = shared_from_this(), ways = &member.ways, number](const sim::strand& at,
                                                                             detail::timer_queue::action on_wake) {
    return std::make_unique<virtual_environment>(self, *ways, number, at, std::move(on_wake));
  };
  auto made = detail::make_client(executor, std::move(settings),
                                  {std::shared_ptr<const detail::clock>(shared_from_this(), &plan_.time()), make});
  member.id = made.id();
  member.core = detail::access::home(made);
  return made;
}

sim::route* stage::way_of(const client& client, const sim::server& machine) {
  for (auto& member : members_)
    if (!member.id.empty() && member.id == client.id())
      for (auto& way : member.ways)
        if (&way.to() == &machine) return &way;
  return nullptr;
}

void stage::end() {
  if (std::exchange(ended_, true)) return;
  pumping_ = true;  // nothing is posted while it is not known whether the io_context lives
  for (auto& server : machines_) server.shut_down();
  for (const auto& member : members_) {
    auto core = member.core.lock();
    if (!core) continue;
    const auto closing = detail::access::make_client(std::move(core));  // its destructor closes the client
    if (!closing.get_executor()) continue;
    pumping_ = false;
    hear_of(now());
  }
}

void stage::pause_until(time_point when) {
  plan_.pause_until(when);
  hear_of(now());  // timers are late
}

void stage::run_until(time_point when) {
  const set_for driving(driving_);
  plan_.run_until(when);
}

void stage::run_due() {
  const set_for driving(driving_);
  plan_.run_due();
}

void stage::step() {
  const set_for driving(driving_);
  plan_.step();
}

void stage::hear_of(time_point something_new) {
  if (driving_ || (something_new > now() && !ended_) || std::exchange(pumping_, true)) return;
  asio::post(context_.executor, [self = shared_from_this()] { self->pump(); });
}

// The io_context runs it, and with it everything that can happen at this instant.
void stage::pump() {
  pumping_ = false;
  if (driving_) return;  // the function that runs the plan runs all that is due
  if (!ended_) return run_due();
  step();
  if (const auto next = plan_.next()) hear_of(*next);
}

}  // namespace holdfast::testing
