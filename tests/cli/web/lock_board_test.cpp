// SPDX-License-Identifier: BSL-1.0
#include "cli/web/lock_board.hpp"

#include <boost/json/parse.hpp>

#include <string>

#include "support/catch.hpp"

using namespace holdfast::cli;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

constexpr lock_board::instant start{1h};

lock_facts lock(const std::string& name, long long ttl, const std::string& holder = "a") {
  lock_facts made;
  made.name = name;
  made.kind = "mutex";
  made.holds = {{holder, ttl}};
  made.waiters = 0;
  return made;
}

std::map<std::string, lock_facts> all(std::initializer_list<lock_facts> locks) {
  std::map<std::string, lock_facts> made;
  for (const auto& one : locks) made.emplace(one.name, one);
  return made;
}

json::object read(const std::string& text) { return json::parse(text).as_object(); }
json::object snapshot(const lock_board& board, lock_board::instant now) {
  return read('{' + board.snapshot(now) + '}');
}

}  // namespace

TEST_CASE("a lock is sent when it comes and when it goes, not while its TTL runs down") {
  lock_board board;
  const auto come = read(board.replace(all({lock("x", 30'000)}), start));
  CHECK(come.at("changed").as_array().size() == 1);
  CHECK(board.replace(all({lock("x", 29'000)}), start + 1s).empty());
  CHECK(board.replace(all({lock("x", 27'900)}), start + 2s).empty());
  const auto id = come.at("changed").at(0).at("id");
  const auto gone = read(board.replace({}, start + 3s));
  CHECK(gone.at("changed").as_array().empty());
  CHECK(gone.at("gone").as_array() == json::array{id});
  CHECK(gone.at("revision").as_int64() == come.at("revision").as_int64() + 1);
}

TEST_CASE("a renewal, another holder and another waiter are changes") {
  lock_board board;
  board.replace(all({lock("x", 30'000)}), start);
  const auto renewed = read(board.replace(all({lock("x", 30'000)}), start + 10s));
  CHECK(renewed.at("changed").at(0).at("lock").at("ttl_ms") == 30'000);
  CHECK_FALSE(board.replace(all({lock("x", 30'000, "b")}), start + 10s).empty());
  auto waited_for = lock("x", 30'000, "b");
  waited_for.waiters = 2;
  CHECK_FALSE(board.set("x", &waited_for, start + 10s).empty());
  CHECK(board.set("x", &waited_for, start + 10s).empty());
  waited_for.holds.front().ttl = -1;
  CHECK_FALSE(board.set("x", &waited_for, start + 10s).empty());
}

TEST_CASE("a lock that comes again has another number") {
  lock_board board;
  const auto one = lock("x", 30'000);
  const auto first = read(board.set("x", &one, start)).at("changed").at(0).at("id");
  CHECK_FALSE(board.set("x", nullptr, start).empty());
  CHECK(board.set("x", nullptr, start).empty());
  CHECK(read(board.set("x", &one, start)).at("changed").at(0).at("id") != first);
}

TEST_CASE("a snapshot tells how old each reading is") {
  lock_board board;
  board.replace(all({lock("x", 30'000)}), start);
  board.replace(all({lock("x", 28'000), lock("y", 5'000)}), start + 2s);
  const auto seen = snapshot(board, start + 3s);
  const auto& locks = seen.at("locks").as_array();
  REQUIRE(locks.size() == 2);
  CHECK(locks[0].at("age_ms") == 3'000);
  CHECK(locks[0].at("lock").at("ttl_ms") == 30'000);
  CHECK(locks[1].at("age_ms") == 1'000);
}

TEST_CASE("locks beyond the limit are counted and not shown") {
  lock_board board;
  std::map<std::string, lock_facts> many;
  for (std::size_t i = 0; i < lock_board::most_shown + 3; ++i) {
    const auto name = std::to_string(i);
    many.emplace(name, lock(name, 30'000));
  }
  board.replace(many, start);
  const auto seen = snapshot(board, start);
  CHECK(seen.at("locks").as_array().size() == lock_board::most_shown);
  CHECK(seen.at("hidden") == 3);
}

TEST_CASE("the waiters of ten minutes are kept, of each five seconds the most") {
  lock_board board;
  auto busy = lock("x", 30'000);
  busy.waiters = 7;
  board.set("x", &busy, start);
  busy.waiters = 2;
  board.set("x", &busy, start + 1s);
  CHECK(snapshot(board, start).at("waiters").as_array() == json::array{7});
  board.set("x", &busy, start + 5s);
  CHECK(snapshot(board, start).at("waiters").as_array() == json::array{7, 2});
  for (int i = 2; i < 500; ++i) board.set("x", &busy, start + i * lock_board::sample_time);
  CHECK(snapshot(board, start).at("waiters").as_array().size() == lock_board::most_samples);
}

TEST_CASE("a name is text in JSON, whatever bytes it has") {
  lock_board board;
  const std::string markup = "</script><b>\"\n";
  board.replace(all({lock(markup, 30'000), lock("\xff", 30'000)}), start);
  const auto locks = snapshot(board, start).at("locks").as_array();
  CHECK(locks[0].at("lock").at("name").as_string() == json::string_view(markup.data(), markup.size()));
  CHECK(locks[1].at("lock").at("name_hex") == "ff");
}

TEST_CASE("gauges count locks and waiters of each kind") {
  lock_board board;
  auto busy = lock("x", 30'000);
  busy.waiters = 3;
  board.replace(all({busy, lock("y", 30'000)}), start);
  CHECK(board.gauges().find("holdfast_page_locks{kind=\"mutex\"} 2\n") != std::string::npos);
  CHECK(board.gauges().find("holdfast_page_waiters{kind=\"mutex\"} 3\n") != std::string::npos);
}
