// SPDX-License-Identifier: BSL-1.0
#include "base/context_end.hpp"

#include <boost/asio/strand.hpp>
#include <utility>
#include <vector>

namespace holdfast::detail {
namespace {

namespace asio = boost::asio;

/// Hears of the end of a context from the context itself.
class context_end final : public asio::execution_context::service {
 public:
  using key_type = context_end;
  static asio::execution_context::id id;

  explicit context_end(asio::execution_context& context)
      : service(context), life_(std::make_shared<context_life>(context)) {}
  const std::shared_ptr<context_life>& life() const noexcept { return life_; }

 private:
  void shutdown() override { life_->end(); }

  const std::shared_ptr<context_life> life_;
};

/// Hears that the context was copied into a child process.
class context_fork final : public asio::execution_context::service {
 public:
  using key_type = context_fork;
  static asio::execution_context::id id;

  explicit context_fork(asio::execution_context& context)
      : service(context), life_(asio::use_service<context_end>(context).life()) {}

 private:
  void shutdown() override {}
  void notify_fork(asio::execution_context::fork_event event) override {
    if (event == asio::execution_context::fork_child) life_->fork();
  }

  const std::shared_ptr<context_life> life_;
};

asio::execution_context::id context_end::id;
asio::execution_context::id context_fork::id;

}  // namespace

// Services end in the reverse order in which they came. While there are visits, strands must work, or their service
// would end beside a visitor who enters one: it comes first.
const std::shared_ptr<context_life>& context_life::of(const asio::any_io_executor& executor) {
  auto& context = asio::query(executor, asio::execution::context);
  if (!asio::has_service<context_end>(context)) static_cast<void>(asio::make_strand(executor));
  return asio::use_service<context_end>(context).life();
}

void context_life::hear_of_forks(asio::execution_context& context) { asio::use_service<context_fork>(context); }

bool context_life::enter() noexcept {
  if ((state_.fetch_add(one_visit, std::memory_order_acq_rel) & ended) == 0) return true;
  leave();
  return false;
}

void context_life::leave() noexcept {
  if (state_.fetch_sub(one_visit, std::memory_order_acq_rel) == one_visit + ended) state_.notify_all();
}

void context_life::add(std::shared_ptr<guest> guest) noexcept {
  const std::lock_guard lock(guard_);
  take_in(std::move(guest));
}

std::shared_ptr<context_life::guest> context_life::remove(guest& guest) noexcept {
  const std::lock_guard lock(guard_);
  return take_out(guest);
}

void context_life::take_in(std::shared_ptr<guest> guest) noexcept {
  auto& listed = *guest;
  listed.kept_ = std::move(guest);
  guests_.push_back(listed);
}

std::shared_ptr<context_life::guest> context_life::take_out(guest& guest) noexcept {
  guests_.erase(guests_.iterator_to(guest));
  return std::move(guest.kept_);
}

void context_life::end() {
  state_.fetch_or(ended, std::memory_order_acq_rel);
  // A visitor on another thread of the parent has no copy in a child: it never leaves.
  for (int now; !here_.elsewhere() && (now = state_.load(std::memory_order_acquire)) != ended;) state_.wait(now);
  while (!guests_.empty()) take_out(guests_.front())->context_ended();
}

void context_life::fork() {
  std::vector<std::shared_ptr<guest>> all;
  for (const auto& guest : guests_) all.push_back(guest.kept_);
  for (const auto& guest : all) guest->forked();
}

}  // namespace holdfast::detail
