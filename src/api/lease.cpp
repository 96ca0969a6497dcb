// SPDX-License-Identifier: BSL-1.0
#include <holdfast/lease.hpp>

#include <utility>

#include "api/arguments.hpp"
#include "api/on_strand.hpp"

namespace holdfast {
namespace {

using detail::caller;
using detail::engine;
using detail::home_of;
using detail::lease_record;

void note_use(const std::shared_ptr<lease_record>& record) noexcept {
  if (record) record->note_use();
}

void release_in_background(std::shared_ptr<lease_record> record) noexcept {
  if (!record || !record->try_release() || !record->home) return;
  record->note_drop();
  const auto home = home_of(*record);
  home->drop(std::move(record));
}

/// The answer of lost(), also when there is no client left to give it.
asio::awaitable<error_code> or_closed(std::shared_ptr<lease_record> record, asio::awaitable<error_code> answer) {
  try {
    co_return co_await std::move(answer);
  } catch (const error& failure) {
    if (failure.code() != errc::closed) throw;
  }
  if (record->released.load(std::memory_order_acquire))
    throw error(errc::not_held, detail::about(record->of->keys()->name, "released, not lost"));
  co_return errc::closed;
}

}  // namespace

lease& lease::operator=(lease&& other) noexcept {
  if (this != &other) {
    release_in_background(std::exchange(record_, std::move(other.record_)));
  }
  return *this;
}

lease::~lease() {
  if (record_) release_in_background(std::move(record_));
}

asio::awaitable<void> lease::unlock() {
  if (!record_) return detail::not_held<void>();
  return detail::on_strand<void>(
      home_of(*record_), [record = record_](engine& locks, const std::shared_ptr<caller<void>>& to, const auto&) {
        to->concerns(record->of->keys());
        locks.unlock(record, [to = to](const std::optional<detail::failure>& failed) { to->answer(failed); });
      });
}

asio::awaitable<void> lease::renew(milliseconds ttl) {
  if (!record_) return detail::not_held<void>();
  return detail::on_strand<void>(
      home_of(*record_), [record = record_, ttl](engine& locks, const std::shared_ptr<caller<void>>& to, const auto&) {
        detail::check_renew_ttl(locks.settings(), ttl);
        to->concerns(record->of->keys());
        locks.renew(record, ttl, [to = to](const std::optional<detail::failure>& failed) { to->answer(failed); });
      });
}

asio::awaitable<error_code> lease::lost() const {
  if (!record_) return detail::not_held<error_code>();
  auto watch = [record = record_](engine& locks, const std::shared_ptr<caller<error_code>>& to, const auto&) {
    to->concerns(record->of->keys());
    auto watching = locks.when_ended(record, [to](error_code why) {
      const bool no_loss = why == errc::not_held || why == asio::error::operation_aborted;
      if (no_loss) return to->answer(detail::failure{why, "released, not lost"});
      to->answer({}, why);
    });
    if (watching) to->cancels(std::move(watching));
  };
  return or_closed(record_, detail::on_strand<error_code>(home_of(*record_), std::move(watch)));
}

void lease::feed() noexcept {
  if (!record_ || !record_->asked.limited() || !record_->feed() || !record_->home) return;
  try {
    home_of(*record_)->enter_later([record = record_] {
      if (auto* locks = home_of(*record)->locks()) locks->fed(record);
    });
  } catch (...) {
    record_->of->pause_renewal();  // no memory: the next feed() tries again
  }
}

bool lease::held() const noexcept {
  note_use(record_);
  return record_ && !record_->released.load(std::memory_order_acquire) && record_->of->exclusive();
}

milliseconds lease::valid_for() const noexcept {
  note_use(record_);
  if (!record_ || record_->released.load(std::memory_order_acquire)) return {};
  return std::chrono::duration_cast<milliseconds>(record_->of->left());
}

lease_state lease::state() const noexcept {
  note_use(record_);
  return record_ ? record_->state() : lease_state::empty;
}

std::optional<std::uint64_t> lease::token() const noexcept {
  note_use(record_);
  return record_ ? record_->of->token() : std::nullopt;
}

const std::string& lease::name() const noexcept {
  static const std::string none;
  note_use(record_);
  return record_ ? record_->of->keys()->name : none;
}

std::string lease::id() const {
  note_use(record_);
  return record_ ? std::string(record_->of->id()) : std::string();
}

owner lease::owner() const noexcept {
  note_use(record_);
  return record_ ? holdfast::owner(record_->owner) : holdfast::owner{};
}

}  // namespace holdfast
