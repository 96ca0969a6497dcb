// SPDX-License-Identifier: BSL-1.0
// Whatever a server answers to a script is a value within its range, or an error that can be printed.
#include <chrono>

#include "fuzz/input.hpp"
#include "protocol/replies.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using fuzz::require;

namespace {

constexpr std::size_t longest_text = 1000;
constexpr auto longest = std::chrono::milliseconds::max();  // says: no TTL
constexpr auto countable = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds::max());

bool countable_token(std::uint64_t token) { return token != 0 && token >> 53 == 0; }

/// True for a value.
template <class T>
bool is_value(const redis::reply& r, const detail::answer<T>& a) {
  require(!r.is_error() || a.failed, "an error of the server is never a value");
  if (!a.failed) return true;
  require(a.failed->code != errc{}, "an error has a code");
  require(a.failed->detail.size() <= longest_text && fuzz::printable(a.failed->detail),
          "a server's words can be printed");
  return false;
}

void check(const redis::reply& r) {
  using acquire = detail::acquire_answer::kind;
  if (const auto a = detail::read_acquire(r); is_value(r, a)) {
    require(!a.value.holder_ttl || (*a.value.holder_ttl >= 0ms && *a.value.holder_ttl <= 24h),
            "a holder's TTL is one that a lock may have");
    require((a.value.type == acquire::busy) == a.value.holder_ttl.has_value(), "only a busy lock has a TTL");
  }
  if (const auto a = detail::read_acquire_fenced(r); is_value(r, a)) {
    require(a.value.token.has_value() == (a.value.type == acquire::acquired),
            "a fenced hold has a token, and nothing else has");
    require(!a.value.token || countable_token(*a.value.token + a.value.spare_tokens),
            "a token is a number that Lua counts exactly");
  }
  if (const auto a = detail::read_acquire_any(r, 3); is_value(r, a))
    require(a.value.number.value_or(0) < 3 && !a.value.token, "one of those that were asked for");
  if (const auto a = detail::read_acquire_any_fenced(r, 3); is_value(r, a)) {
    require(a.value.number.value_or(0) < 3, "one of those that were asked for");
    require(a.value.number.has_value() == a.value.token.has_value(), "a fenced hold has a token");
    require(!a.value.token || countable_token(*a.value.token), "a token is a number that Lua counts exactly");
  }
  if (const auto a = detail::read_acquire_all(r, 3); is_value(r, a)) {
    const auto& h = a.value.hindered;
    require(!h || h->number < 3, "one of those that were asked for");
    require(!h || h->single.failed || h->single.value.type != acquire::acquired, "what hinders is not acquired");
    require(a.value.tokens.empty(), "a plain hold has no token");
  }
  if (const auto a = detail::read_acquire_all_fenced(r, 3); is_value(r, a)) {
    require(a.value.tokens.size() == (a.value.hindered ? 0 : 3), "a fenced hold has a token, and nothing else has");
    for (const auto token : a.value.tokens)
      require(countable_token(token), "a token is a number that Lua counts exactly");
  }
  if (const auto a = detail::read_set(r); is_value(r, a))
    require(!a.value.holder_ttl && !a.value.token, "SET says no more than whether it has set");
  if (const auto a = detail::read_token(r); is_value(r, a) && a.value)
    require(*a.value == 0 || countable_token(*a.value), "a token is a number that Lua counts exactly");
  if (const auto a = detail::read_renew(r, r.elements.size()); is_value(r, a))
    require(a.value.size() == r.elements.size(), "one confirmation for each hold");
  require(detail::read_renew(r, r.elements.size() + 1).failed.has_value(), "a confirmation too few is an error");
  if (const auto a = detail::read_ttl(r); is_value(r, a) && a.value && *a.value != longest) {
    require(*a.value >= 0ms, "a TTL is not negative");
    require(*a.value <= countable, "a TTL can be counted in nanoseconds");
  }
  if (const auto a = detail::read_holder(r); is_value(r, a) && a.value && a.value->ttl != longest)
    require(a.value->ttl >= 0ms && a.value->ttl <= countable, "a holder's TTL can be counted in nanoseconds");
  if (const auto a = detail::read_leader(r); is_value(r, a) && a.value) {
    require(a.value->ttl >= 0ms && (a.value->ttl == longest || a.value->ttl <= countable),
            "a leader's TTL can be counted in nanoseconds");
    require(a.value->term == 0 || countable_token(a.value->term), "a term is a number that Lua counts exactly");
  }
  is_value(r, detail::read_release(r));
  is_value(r, detail::read_flag(r));
  is_value(r, detail::read_count(r));
  require(!detail::is_unknown_script(r) || r.is_error(), "only an error says that a script is unknown");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  redis::reader server;
  server.feed(fuzz::input(data, size).rest());
  while (const auto r = server.next()) check(*r);
  return 0;
}
