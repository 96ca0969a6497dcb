// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/election.hpp>

#include <utility>
#include <variant>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {

election::election(mutex candidate, holdfast::election of) : mutex(std::move(candidate)), of_(std::move(of)) {}

std::optional<std::uint64_t> election::token() const noexcept {
  if (!detail::access::has_core(*this)) return std::nullopt;
  return detail::access::core(*this)->newest(
      detail::this_thread(), [](const detail::any_lease& taken) { return std::get<lease>(taken).token(); },
      std::optional<std::uint64_t>());
}

void election::proclaim(std::string value) const {
  const auto core = detail::access::core(*this);
  core->run_on_newest(detail::this_thread(), [&](const detail::any_lease& newest) {
    return of_.proclaim(std::get<lease>(newest), std::move(value));
  });
}

std::optional<leader_info> election::leader() const {
  const auto core = detail::access::core(*this);
  return core->home().get(detail::this_thread(), of_.leader(), errc::shutting_down);
}

std::optional<leader_info> election::next(std::optional<leader_info> after) const {
  const auto core = detail::access::core(*this);
  return core->get_while_here(of_.next(std::move(after)));
}

}  // namespace holdfast::blocking
