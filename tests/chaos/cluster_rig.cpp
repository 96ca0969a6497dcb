// SPDX-License-Identifier: BSL-1.0
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "chaos/rig.hpp"
#include "chaos/slot_mover.hpp"
#include "chaos/workload.hpp"
#include "support/raw_client.hpp"
#include "support/real_cluster.hpp"
#include "support/wait_for_servers.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

class cluster_rig final : public rig {
 public:
  explicit cluster_rig(history& log) : log_(log), primaries_(servers_.primaries()) {}

  std::string url() const override { return servers_.url(); }

  std::vector<test::real_redis*> primaries() override {
    std::vector<test::real_redis*> all;
    for (const auto n : servers_.primaries()) all.push_back(&servers_.node(n));
    return all;
  }

  std::vector<test::real_redis*> everybody() override {
    std::vector<test::real_redis*> all;
    for (std::size_t n = 0; n < servers_.nodes; ++n) all.push_back(&servers_.node(n));
    return all;
  }

  void begin(fault_kind k, dice& d) override {
    if (k == fault_kind::move_slots) {
      mover_.emplace(servers_, log_, dice(d.below(UINT64_MAX)));
      return;
    }
    const auto primaries = servers_.primaries();
    const auto old = primaries.at(d.below(primaries.size()));
    goes_on_for_ = d.between(0ms, 300ms);
    under_way_ = failover{old, written(servers_.slots_of(old)), now()};
    if (k == fault_kind::kill_primary) {
      servers_.node(old).kill();
      under_way_->until = now();
    } else if (k == fault_kind::stop_primary) {
      servers_.node(old).stop();
    } else {
      test::patiently(servers_.node(servers_.partner_of(old)))("CLUSTER", "FAILOVER");
    }
  }

  void watch() override {
    if (mover_) mover_->step();
    if (!under_way_) return look_for_strangers();
    if (under_way_->told) return;
    try {
      if (servers_.promoted(under_way_->old)) under_way_->told = now();
    } catch (const std::exception&) {  // one that is promoted may close its connections
    }
  }

  void end(fault_kind k) override {
    if (k == fault_kind::move_slots) {
      mover_->finish();
      return mover_.reset();
    }
    auto asked = std::chrono::steady_clock::now();
    test::wait_for_servers("a failover", {}, [&] {
      watch();
      if (k == fault_kind::relieve_primary && !under_way_->told && ask_again(asked))
        test::briefly(servers_.node(servers_.partner_of(under_way_->old))).call({"CLUSTER", "FAILOVER"});
      return under_way_->told.has_value();
    });
    auto& it = *under_way_;
    if (k == fault_kind::stop_primary) {
      servers_.node(it.old).cont();
      std::this_thread::sleep_for(goes_on_for_);
    }
    servers_.mend();
    // A primary that is relieved in time waits until the next one has everything.
    if (k != fault_kind::relieve_primary)
      log_.write("may_forget")
          .add("since", it.since)
          .add("until", it.until.value_or(now()))
          .add("told", *it.told)
          .add("slots", it.slots);
    under_way_.reset();
    primaries_ = servers_.primaries();
  }

 private:
  struct failover {
    std::size_t old;
    std::string slots;
    instant since;
    std::optional<instant> until{}, told{};
  };

  // A node that waits a second for a processor is replaced, and nobody knows what was forgotten.
  void look_for_strangers() {
    constexpr auto often = 500ms;
    if (std::chrono::nanoseconds(now() - looked_) < often) return;
    looked_ = now();
    if (servers_.primaries() != primaries_)
      throw too_slow("a node has taken the place of another by itself: the machine is too slow");
  }

  static std::string written(const std::vector<test::real_cluster::range>& slots) {
    std::string all;
    for (const auto& [from, to] : slots)
      all += (all.empty() ? "" : " ") + std::to_string(from) + "-" + std::to_string(to);
    return all;
  }

  history& log_;
  test::real_cluster servers_;
  std::vector<std::size_t> primaries_;  // that are known of
  instant looked_ = now();
  std::optional<slot_mover> mover_;
  milliseconds goes_on_for_{};
  std::optional<failover> under_way_;
};

}  // namespace

std::unique_ptr<rig> make_cluster_rig(history& log) { return std::make_unique<cluster_rig>(log); }

}  // namespace holdfast::chaos
