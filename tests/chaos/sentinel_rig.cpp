// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chaos/rig.hpp"
#include "chaos/workload.hpp"
#include "support/raw_client.hpp"
#include "support/real_sentinel.hpp"
#include "support/wait_for_servers.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

class sentinel_rig final : public rig {
 public:
  // Half a second is too short for sentinels on a busy machine: they would replace a server that has just replaced
  // another.
  explicit sentinel_rig(history& log) : log_(log), primary_(servers_.primary_number()) {
    for (std::size_t n = 0; n < servers_.sentinels; ++n)
      test::patiently(servers_.sentinel(n))("SENTINEL", "SET", servers_.name, "down-after-milliseconds", 1'000);
  }

  std::string url() const override { return servers_.url(); }

  std::vector<test::real_redis*> primaries() override {
    auto& primary = servers_.primary();
    return lives(primary) ? std::vector{&primary} : std::vector<test::real_redis*>{};
  }

  std::vector<test::real_redis*> everybody() override {
    std::vector<test::real_redis*> all;
    for (std::size_t n = 0; n < servers_.servers; ++n) all.push_back(&servers_.server(n));
    for (std::size_t n = 0; n < servers_.sentinels; ++n) all.push_back(&servers_.sentinel(n));
    return all;
  }

  // The first sentinel lives on: it leads what an operator asks for.
  void begin(fault_kind k, dice& d) override {
    if (k == fault_kind::kill_sentinel) return servers_.sentinel(1 + d.below(servers_.sentinels - 1)).kill();
    ordered_ = true;
    goes_on_for_ = d.between(100ms, 1200ms);
    auto& old = servers_.primary();
    if (k == fault_kind::relieve_primary) return servers_.begin_fail_over();
    answered_until_ = now();
    if (k == fault_kind::stop_primary) {
      stopped_ = &old;
      return old.stop();
    }
    old.kill();
    dead_since_ = now();
  }

  // Sentinels that have to wait for a processor replace a primary that nobody has touched.
  void watch() override {
    constexpr auto often = 8ms;
    if (std::chrono::nanoseconds(now() - looked_) < often) return;
    look();
    if (failovers_.empty() || ordered_) return;
    const auto since = failovers_.front().since;
    mend();
    log_.write("unordered").add("since", since);
  }

  // One that comes back while the others are at work would have them do it twice.
  void end(fault_kind k) override {
    if (k == fault_kind::kill_sentinel) return ordered_ ? void() : mend();
    auto asked = std::chrono::steady_clock::now();
    test::wait_for_servers("a failover", {}, [&] {
      look();
      if (k == fault_kind::relieve_primary && failovers_.empty() && ask_again(asked))
        test::briefly(servers_.sentinel(0)).call({"SENTINEL", "FAILOVER", servers_.name});
      return !failovers_.empty();
    });
    if (stopped_ != nullptr) std::exchange(stopped_, nullptr)->cont();
    // The old one does not know yet, and grants to whoever still asks it.
    if (k != fault_kind::kill_primary) std::this_thread::sleep_for(goes_on_for_);
    mend();
    ordered_ = false;
  }

 private:
  struct failover {
    instant since, told;
    std::optional<instant> until;
  };

  void mend() {
    servers_.mend([this] { look(); });
    look();
    for (const auto& f : failovers_)
      log_.write("may_forget").add("since", f.since).add("until", f.until.value_or(now())).add("told", f.told);
    failovers_.clear();
    promoted_ = false;
    replicas_until_ = now();
  }

  void look() {
    looked_ = now();
    if (!promoted_) {
      const auto first = role(other(1)), second = role(other(2));
      promoted_ = first == "master" || second == "master";
      if (first == "slave" && second == "slave") replicas_until_ = looked_;
    }
    try {
      servers_.announced();
    } catch (const std::exception&) {  // a sentinel that has just been killed
    }
    if (servers_.primary_number() == primary_) return;
    primary_ = servers_.primary_number();
    const auto since = std::min(replicas_until_, answered_until_.value_or(replicas_until_));
    failovers_.push_back({since, now(), dead_since_});
    answered_until_.reset();
    dead_since_.reset();
    promoted_ = false;
    replicas_until_ = now();
  }

  test::real_redis& other(std::size_t n) { return servers_.server((primary_ + n) % servers_.servers); }

  // One that is promoted closes its connections, also that over which it is being asked.
  static std::string role(const test::real_redis& server) {
    try {
      return lives(server) ? test::briefly(server)("ROLE").array().at(0).to_string() : "slave";
    } catch (const std::exception&) {
      return "";
    }
  }

  history& log_;
  test::real_sentinel servers_;
  std::size_t primary_;  // that is known of
  bool ordered_ = false;
  test::real_redis* stopped_ = nullptr;
  milliseconds goes_on_for_{};
  instant looked_ = now(), replicas_until_ = looked_;  // when both others were replicas still
  bool promoted_ = false;
  std::optional<instant> answered_until_{}, dead_since_{};  // the primary that was stopped or killed
  std::vector<failover> failovers_;
};

}  // namespace

std::unique_ptr<rig> make_sentinel_rig(history& log) { return std::make_unique<sentinel_rig>(log); }

}  // namespace holdfast::chaos
