// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <string_view>
#include <utility>

#include <holdfast/config.hpp>

#include "topology/topology.hpp"

namespace holdfast::detail {

/// Counts the users of pushed changes in a client: lines that wait, and the renewals of its holds. Servers push while
/// there is a user, unless config::push is off.
class push_demand {
 public:
  /// One user. It ends with its object.
  class user {
   public:
    user() = default;
    user(const user&) = delete;
    user& operator=(const user&) = delete;
    ~user() { end(); }

    /// Asks the server that owns `key` to push, from the first call until end(). A later call asks also a server that
    /// has got the key since. `of` outlives the user.
    void ask(push_demand& of, std::string_view key) {
      if (of.off_) return;
      of.servers_.start_pushing(key);
      if (!std::exchange(of_, &of)) ++of.users_;
    }
    void end() noexcept {
      auto* const of = std::exchange(of_, nullptr);
      if (of && --of->users_ == 0) of->servers_.stop_pushing();
    }

   private:
    push_demand* of_ = nullptr;  // null: it does not count
  };

  push_demand(topology& servers, const config& settings) noexcept
      : servers_(servers), off_(settings.push == push_mode::off) {}

 private:
  topology& servers_;
  const bool off_;
  std::size_t users_ = 0;
};

}  // namespace holdfast::detail
