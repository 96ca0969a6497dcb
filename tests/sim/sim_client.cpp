// SPDX-License-Identifier: BSL-1.0
#include "sim/sim_client.hpp"

#include <utility>

namespace holdfast::sim {

class sim_client::event_log final : public observer {
 public:
  event_log(scheduler& plan, trace& log, coverage& met, hold_count& holds, std::string who)
      : plan_(plan), log_(log), met_(met), holds_(holds), who_(std::move(who)) {}

  void on(const event& e) noexcept override {
    met_.hit(std::string("event: ").append(to_string(e.kind)));
    holds_.hear(e);
    log_.note(plan_.now(), who_, to_string(e.kind),
              std::string(e.name).append(" ").append(e.reason ? e.reason.message() : ""));
  }

 private:
  scheduler& plan_;
  trace& log_;
  coverage& met_;
  hold_count& holds_;
  const std::string who_;
};

void sim_client::hold_count::hear(const event& e) {
  const std::string id(e.id);
  const bool begins = e.kind == event_kind::acquired;
  if (!begins && !ends_hold(e.kind)) return;
  const bool counts = begins ? held_.insert(id).second : held_.erase(id) == 1;
  if (!counts && wrong_.empty())
    wrong_ = std::string("was told ").append(to_string(e.kind)).append(" once too often of ").append(e.name);
}

std::string sim_client::hold_count::wrong_at_the_end() const {
  return wrong_.empty() && !held_.empty() ? "was not told how a hold ended: " + *held_.begin() : wrong_;
}

sim_client::sim_client(scheduler& plan, deployment& to, trace& log, coverage& met, config settings, std::uint64_t seed,
                       std::size_t number)
    : plan_(plan), name_("client" + std::to_string(number)), settings_(std::move(settings)), random_(seed),
      weather_random_(~seed), order_random_(seed ^ (seed >> 32)), id_{random_.next(), random_.next()},
      process_(plan.time(), order_random_) {
  settings_.observer = std::make_shared<event_log>(plan, log, met, holds_, name_);
  for (auto& each : to.machines())
    ways_.emplace_back(plan, each, weather_random_, log, to.machines().size() == 1 ? name_ : name_ + '@' + each.name());
  servers_ =
      detail::make_topology({process_.strand(), plan.time(), process_, random_, network_}, to.servers_for(settings_),
                            settings_, [this](const event& e) { settings_.observer->on(e); });
  const detail::owner_fields fields{id_};
  uuid_ = std::string(fields.client_uuid());
  const auto id = detail::owner_field(*fields.client(), 1).permit(0);
  half_of_uuid_.assign(id.data(), id.size() / 2);
  log.abbreviate(uuid_, name_);
  engine_.emplace(detail::environment{plan.time(), process_, *servers_, random_, settings_},
                  std::weak_ptr<detail::lease_home>(), fields);
  plan.add(process_);
}

sim_client::~sim_client() {
  plan_.remove(process_);
  engine_.reset();
  servers_.reset();
  home_->leave();
  process_.end();
}

void sim_client::close(nanoseconds grace, std::function<void()> done) {
  closing_ = true;
  engine_->close(grace, [this, done = std::move(done)] {
    servers_->close();
    done();
  });
}

}  // namespace holdfast::sim
