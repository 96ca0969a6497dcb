// SPDX-License-Identifier: BSL-1.0
#include "topology/sentinel/connect_gate.hpp"

#include <chrono>
#include <utility>

#include "base/timers.hpp"

namespace holdfast::detail {
namespace {

// The gate fails an attempt shortly before its owner times it out, because the gate knows the cause.
constexpr std::chrono::milliseconds earlier{1};

}  // namespace

/// One attempt: first here, then beyond.
class connect_gate::passage final : public attempt, public std::enable_shared_from_this<passage> {
 public:
  passage(connect_gate& gate, const redis::io_services& services, const redis::endpoint& node, time_point deadline,
          handler done)
      : gate_(&gate), services_(services), node_(node), deadline_(deadline), done_(std::move(done)),
        alarm_(services.alarms) {}

  void wait() {
    gate_->waiting_.push_back(this);
    alarm_.start(deadline_ - earlier, [this] { fail(); });
    services_.post([self = shared_from_this()] { self->look(); });
  }
  void look() {
    const auto self = shared_from_this();
    if (!gate_ || gate_->state_ == state::closed) return;
    if (gate_->state_ == state::hopeless) return fail();
    inner_ = leave().beyond_.connect(services_, node_, deadline_, std::move(done_));
  }
  void cancel() override {
    if (gate_) leave();
    if (inner_) inner_->cancel();
    done_ = nullptr;
  }
  const char* phase() const noexcept override {
    return inner_ ? inner_->phase() : gate_ ? gate_->why_.detail.c_str() : "";
  }

 private:
  connect_gate& leave() {
    alarm_.stop();
    std::erase(gate_->waiting_, this);
    return *std::exchange(gate_, nullptr);
  }
  void fail() {
    const auto self = shared_from_this();
    auto why = leave().why_;
    std::exchange(done_, nullptr)(nullptr, std::move(why));
  }

  connect_gate* gate_;  // while it waits there
  const redis::io_services services_;
  const redis::endpoint& node_;
  const time_point deadline_;
  handler done_;
  timer alarm_;
  std::shared_ptr<attempt> inner_;
};

std::shared_ptr<redis::transport::attempt> connect_gate::connect(const redis::io_services& services,
                                                                 const redis::endpoint& node, time_point deadline,
                                                                 handler done) {
  if (is_open()) return beyond_.connect(services, node, deadline, std::move(done));
  const auto made = std::make_shared<passage>(*this, services, node, deadline, std::move(done));
  made->wait();
  return made;
}

void connect_gate::set(state state, redis::failure why) {
  why_ = std::move(why);
  if (std::exchange(state_, state) == state || state == state::closed) return;
  std::vector<std::shared_ptr<passage>> all;
  for (auto* passage : waiting_) all.push_back(passage->shared_from_this());
  for (const auto& passage : all) passage->look();
}

}  // namespace holdfast::detail
