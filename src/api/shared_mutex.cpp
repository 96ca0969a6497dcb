// SPDX-License-Identifier: BSL-1.0
#include <holdfast/shared_mutex.hpp>

#include <utility>

#include <holdfast/client.hpp>

#include "api/lock_call.hpp"
#include "protocol/shared/shared_lock.hpp"

namespace holdfast {

using detail::access;
using detail::engine;

namespace {

asio::awaitable<void> replace(lease& write, asio::awaitable<lease> read) { write = co_await std::move(read); }

}  // namespace

shared_mutex::shared_mutex(mutex writer, mutex reader) : writer_(std::move(writer)), reader_(std::move(reader)) {}

asio::awaitable<lease> shared_mutex::lock(lock_options options) const { return writer_.lock(options); }

asio::awaitable<std::optional<lease>> shared_mutex::try_lock(lock_options options) const {
  return writer_.try_lock(options);
}

asio::awaitable<std::optional<lease>> shared_mutex::try_lock_for(milliseconds wait, lock_options options) const {
  return writer_.try_lock_for(wait, options);
}

asio::awaitable<lease> shared_mutex::lock_shared(lock_options options) const { return reader_.lock(options); }

asio::awaitable<std::optional<lease>> shared_mutex::try_lock_shared(lock_options options) const {
  return reader_.try_lock(options);
}

asio::awaitable<std::optional<lease>> shared_mutex::try_lock_shared_for(milliseconds wait, lock_options options) const {
  return reader_.try_lock_for(wait, options);
}

asio::awaitable<void> shared_mutex::downgrade(lease& write) const {
  const auto& record = access::record(write);
  if (!record) return detail::not_held<void>();
  auto home = detail::home_of(*record);
  const auto& here = access::home(reader_);
  const bool ours = !here.owner_before(home) && !home.owner_before(here);
  auto begin = [record, reader = ours ? access::keys(reader_) : nullptr](
                   engine& locks, const std::shared_ptr<detail::caller<lease>>& to, const auto&) {
    to->concerns(record->of->keys());
    if (auto place = locks.downgrade(record, reader, detail::lease_to(to))) to->cancels(std::move(place));
  };
  return replace(write, detail::on_strand<lease>(std::move(home), std::move(begin)));
}

asio::awaitable<bool> shared_mutex::force_unlock() const { return writer_.force_unlock(); }

asio::awaitable<std::optional<lock_holder>> shared_mutex::holder() const { return writer_.holder(); }

asio::awaitable<unsigned> shared_mutex::read_holds() const {
  return detail::on_strand<unsigned>(
      access::home(reader_).lock(),
      [keys = access::keys(reader_)](engine& locks, const std::shared_ptr<detail::caller<unsigned>>& to, const auto&) {
        detail::check_lock(locks, *keys);
        to->concerns(keys);
        locks.ask().read_holds(
            keys, [to](detail::answer<unsigned>&& holds) { to->answer(holds.failed, std::move(holds.value)); });
      },
      detail::refused_by(access::home(reader_)));
}

mutex shared_mutex::writer() const { return writer_; }
mutex shared_mutex::reader() const { return reader_; }

const std::string& shared_mutex::name() const noexcept { return writer_.name(); }

shared_mutex client::shared_mutex(std::string_view name) const {
  return access::make_shared_mutex(core_, name, std::nullopt);
}

shared_mutex client::shared_mutex(std::string_view name, holdfast::owner owner) const {
  return access::make_shared_mutex(core_, name, owner);
}

}  // namespace holdfast
