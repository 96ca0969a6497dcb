// SPDX-License-Identifier: BSL-1.0
#include "api/arguments.hpp"

#include <holdfast/error.hpp>

#include <string>
#include <string_view>

#include "protocol/keys.hpp"
#include "protocol/kind.hpp"
#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

errc refused(const lock_options& asked, config c = {}) {
  try {
    detail::resolve_terms(c, asked);
  } catch (const error& e) {
    return static_cast<errc>(e.code().value());
  }
  return {};
}

template <class F>
std::string words(F check) {
  try {
    check();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a lease is renewed unless it has a TTL of its own") {
  config c;
  c.ttl = 12s;
  const auto plain = detail::resolve_terms(c, {});
  CHECK(plain.ttl == 12s);
  CHECK(plain.renew);
  CHECK_FALSE(plain.limited());
  CHECK_FALSE(detail::resolve_terms(c, {.ttl = 5s}).renew);
  CHECK(detail::resolve_terms(c, {.ttl = 5s}).ttl == 5s);
  CHECK(detail::resolve_terms(c, {.ttl = 5s, .renew = true}).renew);
  CHECK_FALSE(detail::resolve_terms(c, {.renew = false}).renew);
  CHECK(detail::resolve_terms(c, {.max_hold = 1min}).max_hold == 1min);
}

TEST_CASE("TTLs out of range are refused") {
  CHECK(refused({.ttl = 10ms}) == errc{});
  CHECK(refused({.ttl = 9ms}) == errc::invalid_ttl);
  CHECK(refused({.ttl = 0ms}) == errc::invalid_ttl);
  CHECK(refused({.ttl = -1ms}) == errc::invalid_ttl);
  CHECK(refused({.ttl = milliseconds::min()}) == errc::invalid_ttl);
  CHECK(refused({.ttl = 24h}) == errc{});
  CHECK(refused({.ttl = 24h + 1ms}) == errc::invalid_ttl);
  CHECK(refused({.ttl = milliseconds::max()}) == errc::invalid_ttl);
  CHECK(refused({.ttl = 100ms, .renew = true}) == errc{});
  CHECK(refused({.ttl = 99ms, .renew = true}) == errc::invalid_ttl);
}

TEST_CASE("max_hold is for renewed leases and 1 ms to 24 h") {
  CHECK(refused({.max_hold = 1ms}) == errc{});
  CHECK(refused({.max_hold = 24h}) == errc{});
  CHECK(refused({.max_hold = 0ms}) == errc::invalid_ttl);
  CHECK(refused({.max_hold = -1ms}) == errc::invalid_ttl);
  CHECK(refused({.max_hold = milliseconds::max()}) == errc::invalid_ttl);
  CHECK(refused({.ttl = 1s, .max_hold = 1s}) == errc::invalid_ttl);
  CHECK(refused({.ttl = 1s, .renew = true, .max_hold = 1s}) == errc{});
}

TEST_CASE("a refusal names what is wrong and its bounds") {
  CHECK(words([] { detail::resolve_terms({}, {.ttl = 5ms}); }).find("a ttl of 5 ms is not in 10 ms to 86400000 ms") !=
        std::string::npos);
  CHECK(words([] {
          detail::resolve_terms({}, {.ttl = 50ms, .renew = true});
        }).find("a renewed ttl of 50 ms is not in 100 ms") != std::string::npos);
  CHECK(words([] { detail::check_wait(-3ms); }).find("a wait of -3 ms is negative") != std::string::npos);
}

TEST_CASE("renewal to a TTL takes 0 or what a lease may have") {
  CHECK_NOTHROW(detail::check_renew_ttl({}, 0ms));
  CHECK_NOTHROW(detail::check_renew_ttl({}, 10ms));
  CHECK_NOTHROW(detail::check_renew_ttl({}, 24h));
  CHECK_THROWS_AS(detail::check_renew_ttl({}, -1ms), error);
  CHECK_THROWS_AS(detail::check_renew_ttl({}, 9ms), error);
  CHECK_THROWS_AS(detail::check_renew_ttl({}, 24h + 1ms), error);
}

TEST_CASE("names are 1 byte to 64 KiB of any bytes") {
  const auto refused_as = [](std::string_view name) {
    return words([&] { detail::check_name(detail::lock_keys(detail::plain_lock, name)); });
  };
  CHECK(refused_as(std::string_view("\0", 1)) == "nothing");
  CHECK(refused_as(std::string(65'536, '\xff')) == "nothing");
  CHECK(refused_as("") == "invalid name: the name is empty");
  CHECK(refused_as(std::string(65'537, 'x')) == "invalid name: the name has 65537 bytes, more than 65536");
}

TEST_CASE("a note has at most 200 bytes, and a refusal does not quote it") {
  const auto refused_as = [](std::string_view note) { return words([&] { detail::check_note(note); }); };
  CHECK(refused_as("") == "nothing");
  CHECK(refused_as(std::string(200, '\n')) == "nothing");
  CHECK(refused_as(std::string(201, 's')) == "invalid name: the note has 201 bytes, more than 200");
}

TEST_CASE("waits are 0 or more") {
  CHECK_NOTHROW(detail::check_wait(0ms));
  CHECK_NOTHROW(detail::check_wait(milliseconds::max()));
  CHECK_THROWS_AS(detail::check_wait(-1ms), error);
}

TEST_CASE("a name whose keys would be in several slots of a cluster is refused, with its prefix") {
  const auto refused_as = [](std::string_view name, std::string_view prefix) {
    const detail::naming cluster{.prefix = std::string(prefix), .in_slots = true};
    return words([&] { detail::check_name(detail::lock_keys(detail::plain_lock, name, cluster)); });
  };
  CHECK(refused_as("orders:42", "app:") == "nothing");
  CHECK(refused_as("{orders}:42", {}) == "nothing");
  CHECK(refused_as("a\n{", "app:").starts_with("invalid name: the name 'app:a\\x0a{' does not fit a cluster"));
  CHECK(refused_as("a}", {}).starts_with("invalid name"));
}
