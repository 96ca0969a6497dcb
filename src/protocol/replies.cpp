// SPDX-License-Identifier: BSL-1.0
#include "protocol/replies.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/escape.hpp"
#include "protocol/owner_field.hpp"
#include "redis/error_replies.hpp"

namespace holdfast::detail {
namespace {

using redis::reply;

/// A hostile or broken server may claim any TTL. We never wait longer than a lock may last.
constexpr long long longest_busy_ttl = 24LL * 3600 * 1000;
/// The same limit for values that are only shown: callers may add them to a time point, which counts nanoseconds.
constexpr milliseconds longest_shown = std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds::max()) / 2;
/// The largest number that Lua, and with it a resource's check, counts exactly.
constexpr std::uint64_t largest_token = (std::uint64_t{1} << 53) - 1;
/// HINCRBY counts no further.
constexpr std::size_t longest_count = 19;
/// The server's words are quoted behind our explanation.
constexpr std::size_t longest_words = 200;

constexpr auto *no_lock = "its key is no lock", *no_counter = "the counter of its fencing tokens is no number",
               *shared_name =
                   "another kind of lock, or data, has this name. A mutex is a hash. A simple_mutex, a SET NX "
                   "lock and the counter of a semaphore or latch are strings. Give each kind its own names: ";

template <class T>
answer<T> unexpected(const reply& reply) {
  // The command has run, but with an unknown result. So the failure says that it may have run.
  constexpr auto* strange = "an answer of an unexpected form";
  return {reply.is_error() ? classify(reply.text) : failure{errc::protocol_error, strange, true}, {}};
}

template <class T>
answer<T> corrupt(const char* why) {
  return {failure{errc::corrupt_lock, why}, {}};
}

template <class T>
answer<T> value(T value) {
  return {std::nullopt, std::move(value)};
}

bool is_integer(const reply& reply) { return reply.type == reply::kind::integer; }
bool is_nil(const reply& reply) { return reply.type == reply::kind::nil; }

answer<acquire_answer> read_busy(const reply& reply) {
  using kind = acquire_answer::kind;
  if (!is_integer(reply) || reply.integer < -1) return unexpected<acquire_answer>(reply);
  if (reply.integer == -1) return value(acquire_answer{kind::busy_without_ttl, {}, {}});
  return value(acquire_answer{kind::busy, milliseconds(std::min(reply.integer, longest_busy_ttl)), {}});
}

/// As read_busy(). Below -1 the TTL is -2 minus the number, and the holder is no holdfast client.
answer<acquire_answer> read_busy_of_holder(const reply& reply) {
  using kind = acquire_answer::kind;
  if (!is_integer(reply) || reply.integer >= -1) return read_busy(reply);
  const milliseconds ttl(std::min(-2 - reply.integer, longest_busy_ttl));
  return value(acquire_answer{.type = kind::busy, .holder_ttl = ttl, .barging = true});
}

/// Of a shared mutex: -2 if it is free, and kept for others.
answer<acquire_answer> read_busy_or_reserved(const reply& reply) {
  using kind = acquire_answer::kind;
  if (!is_integer(reply) || reply.integer != -2) return read_busy(reply);
  return value(acquire_answer{.type = kind::busy, .holder_ttl = milliseconds(0), .reserved = true});
}

/// Empty for -1: nothing ends.
std::optional<milliseconds> time_left(long long number) {
  return number < 0 ? std::nullopt : std::optional(milliseconds(std::min(number, longest_busy_ttl)));
}

/// A decimal number of at most `digits` digits.
std::optional<std::uint64_t> read_decimal(const reply& reply, std::size_t digits) {
  const bool number = reply.type == reply::kind::string && !reply.text.empty() && reply.text.size() <= digits &&
                      reply.text.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::optional<std::uint64_t>(std::stoull(reply.text)) : std::nullopt;
}

/// The number of a place of this client: the last part of its text. The server returns places of this client alone.
std::optional<std::uint8_t> number_of_place(std::string_view place) {
  const auto colon = place.rfind(':');
  std::uint64_t number = 0;
  const auto* const end = place.data() + place.size();
  const bool read = colon != place.npos && std::from_chars(place.data() + colon + 1, end, number).ptr == end;
  const bool known = read && number >= first_place && number - first_place < most_places;
  return known ? std::optional(static_cast<std::uint8_t>(number - first_place)) : std::nullopt;
}

std::optional<std::uint64_t> new_token(const reply& reply) {
  if (!is_integer(reply) || reply.integer <= 0) return std::nullopt;
  const auto token = static_cast<std::uint64_t>(reply.integer);
  return token <= largest_token ? std::optional(token) : std::nullopt;
}

std::optional<std::uint16_t> spare_tokens(const reply& reply) {
  const bool fits =
      is_integer(reply) && reply.integer >= 0 && reply.integer <= std::numeric_limits<std::uint16_t>::max();
  return fits ? std::optional(static_cast<std::uint16_t>(reply.integer)) : std::nullopt;
}

}  // namespace

answer<acquire_answer> read_acquire(const reply& reply) {
  return is_nil(reply) ? value(acquire_answer{acquire_answer::kind::acquired, {}, {}}) : read_busy_of_holder(reply);
}

answer<acquire_answer> read_acquire_fenced(const reply& reply) {
  if (reply.type != reply::kind::array) return read_busy_of_holder(reply);
  const auto parts = reply.elements.size();
  const auto token = parts == 1 || parts == 2 ? new_token(reply.elements[0]) : std::nullopt;
  const auto spare = parts == 2 ? spare_tokens(reply.elements[1]) : std::optional<std::uint16_t>(0);
  if (!token || !spare || *token > largest_token - *spare) return unexpected<acquire_answer>(reply);
  return value(acquire_answer{.type = acquire_answer::kind::acquired, .token = token, .spare_tokens = *spare});
}

answer<acquire_any_answer> read_acquire_any(const reply& reply, std::size_t sent) {
  if (!is_integer(reply) || reply.integer < 0 || static_cast<unsigned long long>(reply.integer) > sent)
    return unexpected<acquire_any_answer>(reply);
  if (reply.integer == 0) return value(acquire_any_answer{});
  return value(acquire_any_answer{static_cast<std::size_t>(reply.integer) - 1, {}});
}

answer<acquire_any_answer> read_acquire_any_fenced(const reply& reply, std::size_t sent) {
  const bool acquired = reply.type == reply::kind::array && reply.elements.size() == 2;
  auto answer = read_acquire_any(acquired ? reply.elements[0] : reply, sent);
  if (answer.failed) return answer;
  if (acquired) answer.value.token = new_token(reply.elements[1]);
  // A grant without a token, or a token without a grant, is an answer of another script.
  const bool whole = answer.value.number.has_value() == acquired && answer.value.token.has_value() == acquired;
  return whole ? std::move(answer) : unexpected<acquire_any_answer>(reply);
}

answer<acquire_all_answer> read_acquire_all(const reply& reply, std::size_t sent) {
  if (is_nil(reply)) return value(acquire_all_answer{});
  const auto fits = [&] {
    if (reply.type != reply::kind::array || reply.elements.size() != 2) return false;
    const auto& number = reply.elements[0];
    return is_integer(number) && number.integer > 0 && static_cast<unsigned long long>(number.integer) <= sent;
  };
  if (!fits()) return unexpected<acquire_all_answer>(reply);
  const auto& ttl = reply.elements[1];
  auto answer = is_integer(ttl) && ttl.integer == -2   ? corrupt<acquire_answer>(no_lock)
                : is_integer(ttl) && ttl.integer == -3 ? corrupt<acquire_answer>(no_counter)
                                                       : read_busy(ttl);
  // A corrupt lock belongs to the lock that hinders. Any other failure concerns the whole answer.
  if (answer.failed && answer.failed->code != errc::corrupt_lock) return unexpected<acquire_all_answer>(reply);
  return value(acquire_all_answer{{{static_cast<std::size_t>(reply.elements[0].integer) - 1, std::move(answer)}}, {}});
}

answer<acquire_all_answer> read_acquire_all_fenced(const reply& reply, std::size_t sent) {
  const bool acquired = reply.type == reply::kind::array && !reply.elements.empty() && is_integer(reply.elements[0]) &&
                        reply.elements[0].integer == 0;
  if (!acquired) return is_nil(reply) ? unexpected<acquire_all_answer>(reply) : read_acquire_all(reply, sent);
  if (reply.elements.size() != 1 + sent) return unexpected<acquire_all_answer>(reply);
  acquire_all_answer all;
  all.tokens.reserve(sent);
  for (std::size_t i = 1; i <= sent; ++i) {
    const auto token = new_token(reply.elements[i]);
    if (!token) return unexpected<acquire_all_answer>(reply);
    all.tokens.push_back(*token);
  }
  return value(std::move(all));
}

answer<acquire_answer> read_set(const reply& reply) {
  using kind = acquire_answer::kind;
  if (is_nil(reply)) return value(acquire_answer{kind::busy, {}, {}});
  if (reply.type == reply::kind::status && reply.text == "OK") return value(acquire_answer{});
  return unexpected<acquire_answer>(reply);
}

answer<bool> read_flag(const reply& reply) {
  if (!is_integer(reply) || (reply.integer != 0 && reply.integer != 1)) return unexpected<bool>(reply);
  return value(reply.integer == 1);
}

answer<std::vector<renewal_answer>> read_renew(const reply& reply, std::size_t sent) {
  using all = std::vector<renewal_answer>;
  if (reply.type != reply::kind::array || reply.elements.size() != sent) return unexpected<all>(reply);
  all answers;
  answers.reserve(sent);
  for (const auto& element : reply.elements) {
    if (!is_integer(element) || element.integer < -1 || element.integer > 1) return unexpected<all>(element);
    answers.push_back(element.integer == 1   ? renewal_answer::confirmed
                      : element.integer == 0 ? renewal_answer::denied
                                             : renewal_answer::shared);
  }
  return value(std::move(answers));
}

answer<release_answer> read_release(const reply& reply) {
  if (is_nil(reply)) return value(release_answer());
  if (reply.type == reply::kind::string) return value(release_answer(0));
  if (!is_integer(reply) || reply.integer < 0) return unexpected<release_answer>(reply);
  return value(release_answer(reply.integer));
}

answer<unsigned> read_force_release(const reply& reply) {
  if (reply.type == reply::kind::string) return value(1U);
  auto flag = read_flag(reply);
  return {std::move(flag.failed), flag.value ? 1U : 0U};
}

answer<acquire_answer> read_permits(const reply& reply, std::size_t sent) {
  using kind = acquire_answer::kind;
  const bool pair = reply.type == reply::kind::array && reply.elements.size() == 2 && is_integer(reply.elements[0]) &&
                    is_integer(reply.elements[1]);
  if (!pair) return unexpected<acquire_answer>(reply);
  const auto state = reply.elements[0].integer, number = reply.elements[1].integer;
  if (state == static_cast<long long>(sent)) return value(acquire_answer{.served = static_cast<std::uint8_t>(sent)});
  // The permits are out, or somebody else's door is closed.
  const auto least = state == 0 ? -1 : 0;
  if (state < -1 || state > static_cast<long long>(sent) || number < least) return unexpected<acquire_answer>(reply);
  // Where nothing ends by itself, a message brings more permits. Then a waiter looks now and then, as behind a long
  // hold.
  const auto wait = time_left(number).value_or(milliseconds(longest_busy_ttl));
  if (state <= 0) return value(acquire_answer{.type = kind::busy, .holder_ttl = wait});
  return value(acquire_answer{.holder_ttl = wait, .served = static_cast<std::uint8_t>(state)});
}

answer<release_answer> read_permits_release(const reply& reply) {
  if (is_nil(reply)) return value(release_answer());
  const auto answer = read_permits_number(reply);
  if (answer.failed || answer.value < 1) return unexpected<release_answer>(reply);
  return read_release(reply.elements[1]);
}

answer<long long> read_permits_number(const reply& reply) {
  const bool whole = reply.type == reply::kind::array && reply.elements.size() == 2 && is_integer(reply.elements[0]);
  if (!whole || read_release(reply.elements[1]).failed || is_nil(reply.elements[1]))
    return unexpected<long long>(reply);
  return value(reply.elements[0].integer);
}

answer<semaphore_state> read_semaphore(const reply& reply) {
  const auto fits = [&] {
    if (reply.type != reply::kind::array || reply.elements.size() != 5) return false;
    for (const auto number : {0, 1, 2, 4})
      if (!is_integer(reply.elements[number])) return false;
    return reply.elements[3].type == reply::kind::string && reply.elements[1].integer >= 0 &&
           reply.elements[2].integer >= -1 && !read_flag(reply.elements[4]).failed;
  };
  if (!fits()) return unexpected<semaphore_state>(reply);
  const auto& of = reply.elements;
  return value(semaphore_state{.left = of[0].integer,
                               .out = static_cast<unsigned long long>(of[1].integer),
                               .next = time_left(of[2].integer),
                               .first = of[3].text,
                               .held = of[4].integer == 1});
}

answer<acquire_answer> read_reader_acquire(const reply& reply) {
  const auto& of = reply.elements;
  if (reply.type != reply::kind::array || of.empty() || !is_integer(of[0])) return unexpected<acquire_answer>(reply);
  if (of[0].integer == 0 && of.size() == 2) return read_busy_or_reserved(of[1]);
  const bool whole = of[0].integer == 1 && of.size() == 3 && is_integer(of[1]) && of[1].integer >= 0 &&
                     (is_integer(of[2]) || of[2].type == reply::kind::string);
  if (!whole) return unexpected<acquire_answer>(reply);
  // Without PUBSUB the peers are not counted, and each is taken for a reader.
  return value(acquire_answer{.open = of[1].integer == 0 && (!is_integer(of[2]) || of[2].integer <= 0)});
}

answer<acquire_answer> read_writer_acquire(const reply& reply) {
  const auto& of = reply.elements;
  if (reply.type != reply::kind::array || of.empty() || !is_integer(of[0])) return unexpected<acquire_answer>(reply);
  if (of[0].integer == 1 && of.size() == 1) return value(acquire_answer{});
  if (of[0].integer != 0 || of.size() != 3 || !is_integer(of[2]) || of[2].integer < -1)
    return unexpected<acquire_answer>(reply);
  auto busy = read_busy_or_reserved(of[1]);
  constexpr long long largest = std::numeric_limits<std::uint8_t>::max();
  if (of[2].integer >= 0) busy.value.rank = static_cast<std::uint8_t>(std::min(of[2].integer, largest));
  return busy;
}

answer<release_answer> read_reader_release(const reply& reply) {
  if (is_nil(reply)) return value(release_answer());
  const auto& of = reply.elements;
  if (reply.type != reply::kind::array || of.size() != 2 || read_flag(of[0]).failed || is_nil(of[1]))
    return unexpected<release_answer>(reply);
  return read_release(of[1]);
}

answer<release_answer> read_writer_release(const reply& reply) {
  if (is_nil(reply)) return value(release_answer());
  const auto& of = reply.elements;
  const bool whole = reply.type == reply::kind::array && of.size() == 3 && is_integer(of[0]) && of[0].integer >= 0 &&
                     is_integer(of[1]) && of[1].integer >= 0 && !is_nil(of[2]) && !read_release(of[2]).failed;
  if (!whole) return unexpected<release_answer>(reply);
  return value(release_answer(static_cast<std::uint64_t>(of[0].integer) + static_cast<std::uint64_t>(of[1].integer)));
}

answer<acquire_answer> read_fair_acquire(const reply& reply) {
  const auto& of = reply.elements;
  const bool whole = reply.type == reply::kind::array && (of.size() == 2 || of.size() == 3) && is_integer(of[0]) &&
                     is_integer(of[1]) && (of.size() == 2 || of[2].type == reply::kind::string);
  if (!whole || (of[0].integer != 0 && of[0].integer != 1)) return unexpected<acquire_answer>(reply);
  if (of[0].integer == 1)
    return value(acquire_answer{.place = of.size() == 3 ? number_of_place(of[2].text) : std::nullopt});
  const bool reserved = of[1].integer == -2;
  if (reserved != (of.size() == 3)) return unexpected<acquire_answer>(reply);
  auto busy = read_busy_or_reserved(of[1]);
  if (reserved) busy.value.turn = of[2].text;
  return busy;
}

answer<stand_answer> read_stand(const reply& reply) {
  const auto& of = reply.elements;
  if (reply.type != reply::kind::array || of.size() != 2) return unexpected<stand_answer>(reply);
  const auto ttl = read_ttl(of[0]);
  const auto standing = read_waiters(of[1]);
  if (ttl.failed || standing.failed) return unexpected<stand_answer>(reply);
  return value(stand_answer{ttl.value, standing.value});
}

answer<ride_answer> read_ride(const reply& reply) {
  if (is_nil(reply)) return value(ride_answer{});
  const auto& of = reply.elements;
  const bool whole = reply.type == reply::kind::array && of.size() == 3 && is_integer(of[0]) &&
                     (of[0].integer == 1 || of[0].integer == 2) && of[1].type == reply::kind::string &&
                     !is_nil(of[2]) && !read_release(of[2]).failed;
  if (!whole) return unexpected<ride_answer>(reply);
  const auto told = read_release(of[2]).value;
  if (of[0].integer == 1) return value(ride_answer{.told = told, .turn = of[1].text});
  return value(ride_answer{.told = told, .rides = true, .place = number_of_place(of[1].text)});
}

answer<release_answer> read_fair_release(const reply& reply) {
  auto ride = read_ride(reply);
  if (ride.failed || ride.value.rides) return unexpected<release_answer>(reply);
  return value(ride.value.told);
}

answer<unsigned> read_waiters(const reply& reply) {
  if (!is_integer(reply) || reply.integer < 0) return unexpected<unsigned>(reply);
  return value(static_cast<unsigned>(std::min(reply.integer, 0xFFFF'FFFFLL)));
}

answer<bool> read_downgrade(const reply& reply) {
  return reply.type == reply::kind::string ? value(true) : read_flag(reply);
}

answer<shared_state> read_shared_state(const reply& reply) {
  if (is_nil(reply)) return value(shared_state{});
  if (is_integer(reply) && reply.integer > 0) return corrupt<shared_state>(no_lock);
  const auto& of = reply.elements;
  const auto is_text = [&](std::size_t i) { return of[i].type == reply::kind::string; };
  const bool whole = reply.type == reply::kind::array && of.size() == 5 && is_text(0) && is_text(1) && is_text(2) &&
                     (of[0].text == "read" || of[0].text == "write") && is_integer(of[4]) && of[4].integer >= 0;
  if (!whole) return unexpected<shared_state>(reply);
  const auto count = read_count(of[2]);
  const auto ttl = read_ttl(of[3]);
  for (const auto* failed : {&count.failed, &ttl.failed})
    if (*failed) return {*failed, {}};
  if (!ttl.value) return unexpected<shared_state>(reply);
  return value(shared_state{.writes = of[0].text == "write",
                            .owner = of[1].text,
                            .count = count.value,
                            .ttl = *ttl.value,
                            .readers = static_cast<unsigned>(std::min(of[4].integer, 0xFFFF'FFFFLL))});
}

answer<unsigned> read_count(const reply& reply) {
  if (is_nil(reply)) return value(0U);
  if (reply.type != reply::kind::string) return unexpected<unsigned>(reply);
  if (const auto count = read_decimal(reply, longest_count))
    return value(static_cast<unsigned>(std::min<std::uint64_t>(*count, 0xFFFF'FFFF)));
  return corrupt<unsigned>("how often it is held is no number");
}

answer<std::optional<leader_answer>> read_leader(const reply& reply) {
  using leader = std::optional<leader_answer>;
  if (is_nil(reply)) return value(leader{});
  const auto& of = reply.elements;
  const auto is_text = [&](std::size_t i) { return of[i].type == reply::kind::string; };
  const bool whole = reply.type == reply::kind::array && (of.size() == 3 || (of.size() == 4 && is_text(3))) &&
                     is_text(1) && is_text(2);
  if (!whole) return unexpected<leader>(reply);
  const auto ttl = read_ttl(of[0]);
  const auto term = read_token(of[1]);
  for (const auto* failed : {&ttl.failed, &term.failed})
    if (*failed) return {*failed, {}};
  if (!ttl.value) return unexpected<leader>(reply);
  const auto text = of.size() == 4 ? std::optional(of[3].text) : std::nullopt;
  return value(leader(leader_answer{*ttl.value, *term.value, of[2].text, text}));
}

answer<bool> read_latch_set(const reply& reply) {
  const auto& of = reply.elements;
  const bool whole =
      reply.type == reply::kind::array && of.size() == 2 && !is_nil(of[1]) && !read_release(of[1]).failed;
  return whole ? read_flag(of[0]) : unexpected<bool>(reply);
}

answer<release_answer> read_count_down(const reply& reply) {
  const auto left = read_permits_number(reply);
  if (left.failed || left.value < 0) return unexpected<release_answer>(reply);
  return read_release(reply.elements[1]);
}

answer<std::uint32_t> read_latch_count(const reply& reply) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (is_nil(reply)) return value(std::uint32_t{0});
  if (reply.type != reply::kind::string) return unexpected<std::uint32_t>(reply);
  if (const auto count = read_decimal(reply, longest_count))
    return value(static_cast<std::uint32_t>(std::min(*count, most)));
  // Only another program leaves such a count.
  auto below_zero = reply;
  below_zero.text.erase(0, reply.text.starts_with('-') ? 1 : 0);
  return read_decimal(below_zero, longest_count) ? value(std::uint32_t{0})
                                                 : corrupt<std::uint32_t>("its key is no count");
}

answer<std::optional<std::uint64_t>> read_token(const reply& reply) {
  using token = std::optional<std::uint64_t>;
  if (is_nil(reply)) return value(token{});
  const auto number = read_decimal(reply, 16);
  if (number && *number <= largest_token) return value(token{number});
  if (reply.type != reply::kind::string) return unexpected<token>(reply);
  return corrupt<token>(no_counter);
}

answer<std::optional<milliseconds>> read_ttl(const reply& reply) {
  using ttl = std::optional<milliseconds>;
  if (!is_integer(reply) || reply.integer < -2) return unexpected<ttl>(reply);
  if (reply.integer == -2) return value(ttl{});
  if (reply.integer == -1) return value(ttl{milliseconds::max()});
  return value(ttl{std::min(milliseconds(reply.integer), longest_shown)});
}

answer<std::optional<holder_answer>> read_holder(const reply& reply) {
  using holder = std::optional<holder_answer>;
  if (is_nil(reply)) return value(holder{});
  if (is_integer(reply) && reply.integer > 1) return corrupt<holder>("several fields: the lock of one owner has one");
  if (reply.type != reply::kind::array || reply.elements.size() != 3 || reply.elements[0].type != reply::kind::string ||
      is_nil(reply.elements[1]))
    return unexpected<holder>(reply);
  const auto count = read_count(reply.elements[1]);
  const auto ttl = read_ttl(reply.elements[2]);
  for (const auto* failed : {&count.failed, &ttl.failed})
    if (*failed) return {*failed, {}};
  if (!ttl.value) return unexpected<holder>(reply);
  return value(holder(holder_answer{reply.elements[0].text, count.value, *ttl.value}));
}

bool is_unknown_script(const reply& reply) noexcept { return reply.is_error() && reply.text.starts_with("NOSCRIPT"); }

bool wants_one_key(const redis::outcome& outcome) noexcept {
  return !outcome.error && outcome.reply.is_error() && outcome.reply.text.starts_with("TRYAGAIN");
}

bool wants_one_slot(const redis::outcome& outcome) noexcept {
  return !outcome.error && outcome.reply.is_error() && outcome.reply.text.starts_with("CROSSSLOT");
}

failure classify(std::string_view text) {
  constexpr std::string_view generic = "ERR ";
  const auto words = text.substr(text.starts_with(generic) ? generic.size() : 0);
  // The error replies of our own scripts.
  for (const std::string_view begins : {"HOLDFAST invalid token", "HOLDFAST corrupt count"})
    if (words.starts_with(begins)) return redis::classify(text, errc::corrupt_lock);
  const bool is_shared = words.starts_with("HOLDFAST no lock");
  auto why = redis::classify(text, is_shared ? errc::corrupt_lock : errc::server_refused);
  if (why.code == errc::corrupt_lock) why.detail = shared_name + escaped(text, longest_words);  // or WRONGTYPE
  return why;
}

}  // namespace holdfast::detail
