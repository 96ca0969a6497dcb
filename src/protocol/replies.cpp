// SPDX-License-Identifier: BSL-1.0
#include "protocol/replies.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/escape.hpp"
#include "redis/error_replies.hpp"

namespace holdfast::detail {
namespace {

using redis::reply;

/// A hostile or broken server may claim any TTL: what we wait for stays within what a lock may have.
constexpr long long longest_busy_ttl = 24LL * 3600 * 1000;
/// The same for what is only shown: callers may add it to a time point, which counts nanoseconds.
constexpr milliseconds longest_shown = std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds::max()) / 2;
/// The largest number that Lua, and with it a resource's check, counts exactly.
constexpr std::uint64_t largest_token = (std::uint64_t{1} << 53) - 1;
/// What HINCRBY counts to.
constexpr std::size_t longest_count = 19;
/// Of the server, behind a meaning of ours.
constexpr std::size_t longest_words = 200;

constexpr auto *no_lock = "its key is no lock", *no_counter = "the counter of its fencing tokens is no number";

template <class T>
answer<T> unexpected(const reply& r) {
  constexpr auto* strange = "an answer of an unexpected form";  // it has run, and what it says nobody knows
  return {r.is_error() ? classify(r.text) : failure{errc::protocol_error, strange, true}, {}};
}

template <class T>
answer<T> corrupt(const char* why) {
  return {failure{errc::corrupt_lock, why}, {}};
}

template <class T>
answer<T> value(T v) {
  return {std::nullopt, std::move(v)};
}

bool is_integer(const reply& r) { return r.type == reply::kind::integer; }
bool is_nil(const reply& r) { return r.type == reply::kind::nil; }

answer<acquire_answer> read_busy(const reply& r) {
  using kind = acquire_answer::kind;
  if (!is_integer(r) || r.integer < -1) return unexpected<acquire_answer>(r);
  if (r.integer == -1) return value(acquire_answer{kind::busy_without_ttl, {}, {}});
  return value(acquire_answer{kind::busy, milliseconds(std::min(r.integer, longest_busy_ttl)), {}});
}

/// A decimal number of at most `digits` digits.
std::optional<std::uint64_t> read_decimal(const reply& r, std::size_t digits) {
  const bool number = r.type == reply::kind::string && !r.text.empty() && r.text.size() <= digits &&
                      r.text.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::optional<std::uint64_t>(std::stoull(r.text)) : std::nullopt;
}

std::optional<std::uint64_t> new_token(const reply& r) {
  if (!is_integer(r) || r.integer <= 0) return std::nullopt;
  const auto token = static_cast<std::uint64_t>(r.integer);
  return token <= largest_token ? std::optional(token) : std::nullopt;
}

std::optional<std::uint16_t> spare_tokens(const reply& r) {
  const bool fits = is_integer(r) && r.integer >= 0 && r.integer <= std::numeric_limits<std::uint16_t>::max();
  return fits ? std::optional(static_cast<std::uint16_t>(r.integer)) : std::nullopt;
}

}  // namespace

answer<acquire_answer> read_acquire(const reply& r) {
  return is_nil(r) ? value(acquire_answer{acquire_answer::kind::acquired, {}, {}}) : read_busy(r);
}

answer<acquire_answer> read_acquire_fenced(const reply& r) {
  if (r.type != reply::kind::array) return read_busy(r);
  const auto parts = r.elements.size();
  const auto token = parts == 1 || parts == 2 ? new_token(r.elements[0]) : std::nullopt;
  const auto spare = parts == 2 ? spare_tokens(r.elements[1]) : std::optional<std::uint16_t>(0);
  if (!token || !spare || *token > largest_token - *spare) return unexpected<acquire_answer>(r);
  return value(acquire_answer{.what = acquire_answer::kind::acquired, .token = token, .spare_tokens = *spare});
}

answer<acquire_any_answer> read_acquire_any(const reply& r, std::size_t sent) {
  if (!is_integer(r) || r.integer < 0 || static_cast<unsigned long long>(r.integer) > sent)
    return unexpected<acquire_any_answer>(r);
  if (r.integer == 0) return value(acquire_any_answer{});
  return value(acquire_any_answer{static_cast<std::size_t>(r.integer) - 1, {}});
}

answer<acquire_any_answer> read_acquire_any_fenced(const reply& r, std::size_t sent) {
  const bool acquired = r.type == reply::kind::array && r.elements.size() == 2;
  auto said = read_acquire_any(acquired ? r.elements[0] : r, sent);
  if (said.failed) return said;
  if (acquired) said.value.token = new_token(r.elements[1]);
  const bool whole = said.value.number.has_value() == acquired && said.value.token.has_value() == acquired;
  return whole ? std::move(said) : unexpected<acquire_any_answer>(r);
}

answer<acquire_all_answer> read_acquire_all(const reply& r, std::size_t sent) {
  if (is_nil(r)) return value(acquire_all_answer{});
  const auto fits = [&] {
    if (r.type != reply::kind::array || r.elements.size() != 2) return false;
    const auto& number = r.elements[0];
    return is_integer(number) && number.integer > 0 && static_cast<unsigned long long>(number.integer) <= sent;
  };
  if (!fits()) return unexpected<acquire_all_answer>(r);
  const auto& ttl = r.elements[1];
  auto said = is_integer(ttl) && ttl.integer == -2   ? corrupt<acquire_answer>(no_lock)
              : is_integer(ttl) && ttl.integer == -3 ? corrupt<acquire_answer>(no_counter)
                                                     : read_busy(ttl);
  if (said.failed && said.failed->code != errc::corrupt_lock) return unexpected<acquire_all_answer>(r);
  return value(acquire_all_answer{{{static_cast<std::size_t>(r.elements[0].integer) - 1, std::move(said)}}, {}});
}

answer<acquire_all_answer> read_acquire_all_fenced(const reply& r, std::size_t sent) {
  const bool acquired =
      r.type == reply::kind::array && !r.elements.empty() && is_integer(r.elements[0]) && r.elements[0].integer == 0;
  if (!acquired) return is_nil(r) ? unexpected<acquire_all_answer>(r) : read_acquire_all(r, sent);
  if (r.elements.size() != 1 + sent) return unexpected<acquire_all_answer>(r);
  acquire_all_answer all;
  all.tokens.reserve(sent);
  for (std::size_t i = 1; i <= sent; ++i) {
    const auto token = new_token(r.elements[i]);
    if (!token) return unexpected<acquire_all_answer>(r);
    all.tokens.push_back(*token);
  }
  return value(std::move(all));
}

answer<acquire_answer> read_set(const reply& r) {
  using kind = acquire_answer::kind;
  if (is_nil(r)) return value(acquire_answer{kind::busy, {}, {}});
  if (r.type == reply::kind::status && r.text == "OK") return value(acquire_answer{});
  return unexpected<acquire_answer>(r);
}

answer<bool> read_flag(const reply& r) {
  if (!is_integer(r) || (r.integer != 0 && r.integer != 1)) return unexpected<bool>(r);
  return value(r.integer == 1);
}

answer<std::vector<renewal_answer>> read_renew(const reply& r, std::size_t sent) {
  using all = std::vector<renewal_answer>;
  if (r.type != reply::kind::array || r.elements.size() != sent) return unexpected<all>(r);
  all answers;
  answers.reserve(sent);
  for (const auto& e : r.elements) {
    if (!is_integer(e) || e.integer < -1 || e.integer > 1) return unexpected<all>(e);
    answers.push_back(e.integer == 1   ? renewal_answer::confirmed
                      : e.integer == 0 ? renewal_answer::denied
                                       : renewal_answer::shared);
  }
  return value(std::move(answers));
}

answer<release_answer> read_release(const reply& r) {
  if (is_nil(r)) return value(release_answer());
  if (r.type == reply::kind::string) return value(release_answer(0));
  if (!is_integer(r) || r.integer < 0) return unexpected<release_answer>(r);
  return value(release_answer(r.integer));
}

answer<bool> read_force_release(const reply& r) { return r.type == reply::kind::string ? value(true) : read_flag(r); }

answer<unsigned> read_count(const reply& r) {
  if (is_nil(r)) return value(0U);
  if (r.type != reply::kind::string) return unexpected<unsigned>(r);
  if (const auto count = read_decimal(r, longest_count))
    return value(static_cast<unsigned>(std::min<std::uint64_t>(*count, 0xFFFF'FFFF)));
  return corrupt<unsigned>("how often it is held is no number");
}

answer<std::optional<std::uint64_t>> read_token(const reply& r) {
  using token = std::optional<std::uint64_t>;
  if (is_nil(r)) return value(token{});
  const auto number = read_decimal(r, 16);
  if (number && *number <= largest_token) return value(token{number});
  if (r.type != reply::kind::string) return unexpected<token>(r);
  return corrupt<token>(no_counter);
}

answer<std::optional<milliseconds>> read_ttl(const reply& r) {
  using ttl = std::optional<milliseconds>;
  if (!is_integer(r) || r.integer < -2) return unexpected<ttl>(r);
  if (r.integer == -2) return value(ttl{});
  if (r.integer == -1) return value(ttl{milliseconds::max()});
  return value(ttl{std::min(milliseconds(r.integer), longest_shown)});
}

answer<std::optional<holder_answer>> read_holder(const reply& r) {
  using holder = std::optional<holder_answer>;
  if (is_nil(r)) return value(holder{});
  if (is_integer(r) && r.integer > 1) return corrupt<holder>("several fields: the lock of one owner has one");
  if (r.type != reply::kind::array || r.elements.size() != 3 || r.elements[0].type != reply::kind::string ||
      is_nil(r.elements[1]))
    return unexpected<holder>(r);
  const auto count = read_count(r.elements[1]);
  const auto ttl = read_ttl(r.elements[2]);
  for (const auto* failed : {&count.failed, &ttl.failed})
    if (*failed) return {*failed, {}};
  if (!ttl.value) return unexpected<holder>(r);
  return value(holder(holder_answer{r.elements[0].text, count.value, *ttl.value}));
}

bool is_unknown_script(const reply& r) noexcept { return r.is_error() && r.text.starts_with("NOSCRIPT"); }

bool wants_one_key(const redis::outcome& o) noexcept {
  return !o.error && o.reply.is_error() && o.reply.text.starts_with("TRYAGAIN");
}

bool wants_one_slot(const redis::outcome& o) noexcept {
  return !o.error && o.reply.is_error() && o.reply.text.starts_with("CROSSSLOT");
}

failure classify(std::string_view text) {
  constexpr std::string_view generic = "ERR ";
  const auto words = text.substr(text.starts_with(generic) ? generic.size() : 0);
  // What our own scripts say.
  for (const std::string_view begins : {"HOLDFAST no lock", "HOLDFAST invalid token", "HOLDFAST corrupt count"})
    if (words.starts_with(begins)) return redis::classify(text, errc::corrupt_lock);
  auto why = redis::classify(text, errc::server_refused);
  if (why.code == errc::corrupt_lock)  // WRONGTYPE
    why.detail = "another type is there: a mutex has a hash, a simple_mutex or a SET NX lock a string: " +
                 escaped(text, longest_words);
  return why;
}

}  // namespace holdfast::detail
