// SPDX-License-Identifier: BSL-1.0
#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>

#include <set>
#include <string>
#include <system_error>

#include "support/catch.hpp"

using holdfast::errc;

namespace {

constexpr int last_code = static_cast<int>(errc::already_held);

}  // namespace

TEST_CASE("every code has a meaning of its own") {
  std::set<std::string> texts;
  for (int code = 1; code <= last_code; ++code) texts.insert(holdfast::category().message(code));
  CHECK(texts.size() == std::size_t{last_code});
  CHECK(texts.count("unknown error") == 0);
  CHECK(holdfast::category().message(0) == "unknown error");
  CHECK(holdfast::category().message(last_code + 1) == "unknown error");
}

TEST_CASE("a code belongs to the category holdfast and converts to std::error_code") {
  const holdfast::error_code code = errc::lost;
  CHECK(std::string(code.category().name()) == "holdfast");
  CHECK(code == errc::lost);
  CHECK(code != errc::closed);
  const std::error_code standard = code;
  CHECK(standard == std::error_code(make_error_code(errc::lost)));
  CHECK(standard.message() == code.message());
  CHECK(std::string(standard.category().name()) == "holdfast");
}

TEST_CASE("an error says its meaning and then its detail") {
  const holdfast::error e(errc::unreachable, "redis://db:6379: connection refused");
  CHECK(std::string(e.what()) == "no answer from Redis: redis://db:6379: connection refused");
  CHECK(e.code() == errc::unreachable);
  CHECK(std::string(holdfast::error(errc::not_held, "").what()) == "the lease holds nothing");
}

TEST_CASE("an error is caught as a system error and keeps its text when copied") {
  try {
    const holdfast::error e(errc::closed, "orders:42");
    throw holdfast::error(e);
  } catch (const boost::system::system_error& caught) {
    CHECK(caught.code() == errc::closed);
    CHECK(std::string(caught.what()) == "the client is closed: orders:42");
  }
}

TEST_CASE("every kind of event has a name of its own") {
  std::set<std::string_view> names;
  constexpr auto last = static_cast<int>(holdfast::event::kind::fencing_degraded);
  for (int kind = 0; kind <= last; ++kind) names.insert(to_string(static_cast<holdfast::event::kind>(kind)));
  CHECK(names.size() == std::size_t{last} + 1);
  CHECK(names.count("unknown") == 0);
  CHECK(to_string(holdfast::event::kind::acquired) == "acquired");
}
