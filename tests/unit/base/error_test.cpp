// SPDX-License-Identifier: BSL-1.0
#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <system_error>

#include "support/catch.hpp"

using holdfast::errc;

namespace {

constexpr int last_code = static_cast<int>(errc::invalid_argument);

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

TEST_CASE("a code belongs to what is to be done about it") {
  using holdfast::condition;
  const holdfast::error_code refused = errc::server_refused;
  CHECK(refused == condition::retry_later);
  CHECK(refused != condition::setup);
  const std::error_code standard = refused;
  CHECK(standard == condition::retry_later);
  CHECK(standard != condition::setup);
  CHECK(make_error_code(errc::lost) == condition::no_longer_held);
  CHECK(make_error_code(errc::not_held) == condition::misuse);
  CHECK(make_error_code(errc::tls_failed) == condition::setup);
  const auto all = {condition::retry_later, condition::no_longer_held, condition::misuse, condition::setup};
  for (int code = 1; code <= last_code; ++code) {
    const holdfast::error_code of(code, holdfast::category());
    CAPTURE(of.message());
    const auto times = std::count_if(all.begin(), all.end(), [&](condition c) { return of == c; });
    CHECK(times == (of == errc::unconfirmed ? 0 : of == errc::corrupt_lock ? 2 : 1));
    const holdfast::error_code foreign(code, boost::system::generic_category());
    CHECK(std::none_of(all.begin(), all.end(), [&](condition c) { return foreign == c; }));
  }
  std::set<std::string> texts;
  for (const auto c : all) texts.insert(make_error_condition(c).message());
  CHECK(texts == std::set<std::string>{"retry later", "no longer held", "misuse", "set-up"});
  CHECK(std::none_of(all.begin(), all.end(), [](condition c) { return holdfast::error_code() == c; }));
}

TEST_CASE("every kind of event has a name of its own") {
  std::set<std::string_view> names;
  for (std::size_t kind = 0; kind < holdfast::event_kinds; ++kind)
    names.insert(to_string(static_cast<holdfast::event_kind>(kind)));
  CHECK(names.size() == holdfast::event_kinds);
  CHECK(to_string(static_cast<holdfast::event_kind>(holdfast::event_kinds)) == "unknown");
  CHECK(names.count("unknown") == 0);
  CHECK(to_string(holdfast::event_kind::acquired) == "acquired");
}
