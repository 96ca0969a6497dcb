// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/with_lock.hpp>

#include <exception>
#include <utility>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking::detail {
namespace {

/// As an error, if it is one of the library's.
std::optional<error> error_in(const std::exception_ptr& failed) {
  if (!failed) return std::nullopt;
  try {
    std::rethrow_exception(failed);
  } catch (const error& failure) {
    return failure;
  } catch (...) {
    return std::nullopt;
  }
}

[[noreturn]] void throw_loss(const error& loss, const std::exception_ptr& thrown) {
  if (!thrown) throw loss;
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    std::throw_with_nested(loss);
  }
}

}  // namespace

section::section(lockable& on, std::optional<milliseconds> wait)
    : section(access::core(on),
              wait ? access::core(on)->try_lock(this_thread(), *wait) : access::core(on)->lock(this_thread())) {}

section::section(const std::shared_ptr<lock_core>& core, const std::stop_token& stop)
    : section(core, core->lock_until_stopped(this_thread(), stop)) {}

section::section(std::shared_ptr<lock_core> core, std::optional<std::uint64_t> hold)
    : core_(std::move(core)), hold_(hold), open_(had()) {
  if (!had()) return;
  try {
    ended_ = core_->watch(this_thread());
    stop_ = core_->stop_token(this_thread());
    core_->check(this_thread());
  } catch (...) {
    give_back();
    throw;
  }
}

section::~section() {
  if (open_) give_back();
}

void section::give_back() noexcept {
  open_ = false;
  if (auto held = core_->take_out(this_thread(), hold_)) core_->give_back(std::move(*held));
}

void section::end(const std::exception_ptr& thrown) {
  open_ = false;
  if (core_->elsewhere()) throw_loss(error(errc::closed, core_->about("the parent process holds it")), thrown);
  give_back();  // if the function has not done so itself
  if (!ended_->known) throw_loss(error(errc::closed, core_->about("its object has ended")), thrown);
  const auto failed = ended_->failed;
  const auto why = error_in(failed);
  if (ended_->lost) throw_loss(why ? *why : error(errc::lost, core_->about("lost while its section ran")), thrown);
  if (thrown) std::rethrow_exception(thrown);  // its own failure matters more; the observer has heard of the other
  // Who unlocks what is not exclusive any more gets lost: unconfirmed, it was, to its end.
  if (failed && !(why && why->code() == errc::unconfirmed)) std::rethrow_exception(failed);
}

}  // namespace holdfast::blocking::detail
