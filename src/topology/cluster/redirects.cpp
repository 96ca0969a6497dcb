// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/redirects.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <system_error>

#include "redis/error_replies.hpp"

namespace holdfast::detail {
namespace {

using std::chrono::milliseconds;

constexpr unsigned most_hops = 5;
constexpr redirects::duration first_pause = milliseconds(2);
constexpr redirects::duration longest_redirect_pause = milliseconds(100);

std::optional<unsigned> number_in(std::string_view text) {
  unsigned n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  return failed == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

// Redis 6 wraps the error of a call inside a script into a sentence.
bool says_not_now(std::string_view error) {
  for (const std::string_view begins : {"CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY"})
    if (error.starts_with(begins)) return true;
  return error.find("READONLY You can't write") != error.npos || ended_in_script(error);
}

}  // namespace

bool ended_in_script(std::string_view error) noexcept { return error.find("access a non local key") != error.npos; }

std::optional<redirect> read_redirect(std::string_view error, const redis::address& answered_by,
                                      const reach_by& reach) {
  if (!redis::is_redirect(error)) return std::nullopt;
  const auto begin = error.find(' ') + 1, end = error.find(' ', begin);
  if (end == error.npos) return std::nullopt;
  const auto where = error.substr(end + 1);
  const auto colon = where.rfind(':');
  if (colon == where.npos) return std::nullopt;
  const auto slot = number_in(error.substr(begin, end - begin)), port = number_in(where.substr(colon + 1));
  if (!slot || *slot >= slot_count || !port) return std::nullopt;
  auto to = announced_address(where.substr(0, colon), *port, answered_by, reach);
  if (!to) return std::nullopt;
  const auto kind = error.front() == 'M' ? redirect::kind::moved : redirect::kind::ask;
  return redirect{kind, static_cast<slot_number>(*slot), *std::move(to)};
}

redirects::step redirects::on_reply(const redis::reply& reply, const redis::address& answered_by, const reach_by& reach,
                                    time_point now) {
  if (!reply.is_error()) return {};
  if (reply.text.starts_with("TRYAGAIN")) return divisible_ ? step{} : on_try_again(now);
  try_again_since_.reset();
  if (const auto to = read_redirect(reply.text, answered_by, reach)) return on_redirect(*to, answered_by);
  if (redis::is_redirect(reply.text) || says_not_now(reply.text)) return elsewhere(step::kind::by_map);
  return {};
}

redirects::step redirects::on_redirect(const redirect& redirect, const redis::address& answered_by) {
  const bool ask = redirect.type == redirect::kind::ask;
  // A node that names itself, or two that name each other, do not know the new owner yet. The first MOVED after any
  // number of ASK is the end of the move.
  const bool doubtful = redirect.to == answered_by || (ask ? followed_ >= 2 : moved_);
  step next{ask ? step::kind::to_named : step::kind::by_map, redirect.to, ask, {}, !ask, {}};
  if (!ask) {
    next.moved = redirect;
    moved_ = true;
  }
  if (++followed_ > most_hops) pause_ = longest_redirect_pause;
  if (doubtful) next.pause = grow();
  return next;
}

redirects::step redirects::on_try_again(time_point now) {
  if (!try_again_since_) try_again_since_ = now;
  if (now - *try_again_since_ >= longest_try_again) return {};
  return {.type = step::kind::same_node, .pause = grow()};
}

redirects::step redirects::elsewhere(step::kind kind) { return {.type = kind, .pause = grow(), .refresh = true}; }

redirects::duration redirects::grow() {
  pause_ = pause_ == duration{} ? first_pause : std::min(2 * pause_, longest_redirect_pause);
  return pause_;
}

}  // namespace holdfast::detail
