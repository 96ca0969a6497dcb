// SPDX-License-Identifier: BSL-1.0
// What holdfast is for, shown with real processes and judged by what the Redis server says.
#include <signal.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>

#include "job.hpp"
#include "stage.hpp"
#include "support/child_process.hpp"
#include "support/real_redis.hpp"
#include "support/temp_folder.hpp"

namespace holdfast::demo {
namespace {

using namespace std::chrono_literals;

constexpr int usage_error = 64, no_server = 69;

constexpr const char* usage = R"(holdfast_demo [--url URL] [--scene NAME] [--page PROGRAM]
  Shows five scenes with real processes: contention, renewal, a killed holder, a holder that is cut off, cancelled
  waiters. Judges itself by what the server says; the exit status is 0 when everything was right.

  --url URL   your own Redis instead of a private one: redis://[user:password@]host[:port][/db] or
              redis+unix:///path[?db=n]. All keys have a prefix of their own, and none is left.
  --scene NAME
              one scene alone: contention, renewal, killed, cut-off, cancelled; or failover, which starts a primary, two
              replicas and three sentinels, and kills the primary before a holder, a waiter and a counter
  --page PROGRAM
              shows the locks on the page of this `holdfast`, and plays the scenes again and again until Ctrl-C
  --help      this text

  HOLDFAST_DEMO_BREAK=owner-check   one worker deletes a lock that is not its own, as a lock without an owner check
                                    would: the demo must notice
  NO_COLOR=1                        no colours
)";

using scene = asio::awaitable<void> (*)(stage&);

struct arguments {
  std::string url, page;
  std::vector<scene> scenes{contention, renewal, killed_holder, cut_off_holder, cancelled_waiters};
  bool broken_owner_check = false;
};

scene scene_of(std::string_view name) {
  constexpr std::pair<std::string_view, scene> all[] = {{"contention", contention},       {"renewal", renewal},
                                                        {"killed", killed_holder},        {"cut-off", cut_off_holder},
                                                        {"cancelled", cancelled_waiters}, {"failover", failover}};
  const auto* found = std::find_if(std::begin(all), std::end(all), [&](const auto& one) { return one.first == name; });
  return found == std::end(all) ? nullptr : found->second;
}

std::optional<arguments> parse(const std::vector<std::string>& given) {
  arguments result;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == "--url" && i + 1 < given.size() && !given[i + 1].empty())
      result.url = given[++i];
    else if (given[i].starts_with("--url=") && given[i].size() > 6)
      result.url = given[i].substr(6);
    else if (given[i] == "--page" && i + 1 < given.size() && !test::find_executable(given[i + 1]).empty())
      result.page = given[++i];
    else if (given[i] == "--scene" && i + 1 < given.size() && scene_of(given[i + 1]) != nullptr)
      result.scenes = {scene_of(given[++i])};
    else
      return std::nullopt;
  }
  if (result.scenes[0] == failover && !result.url.empty()) return std::nullopt;  // it kills servers: its own
  const char* fault = std::getenv("HOLDFAST_DEMO_BREAK");
  const std::string_view wanted = fault != nullptr ? fault : "";
  if (!wanted.empty() && wanted != "owner-check") return std::nullopt;
  result.broken_owner_check = wanted == "owner-check";
  return result;
}

std::string what_is_wrong_with(const std::string& url) {
  try {
    using scheme = detail::url_parts::scheme;
    if (url.empty()) return {};
    const auto parts = detail::parse_url(url);
    if (parts.use_tls || parts.kind == scheme::sentinel || parts.kind == scheme::cluster)
      return "the demo looks at the server with a plain connection of its own, to one server and without TLS: redis:// "
             "or redis+unix:// here";
  } catch (const holdfast::error& refused) {
    return refused.what();
  }
  return {};
}

std::string random_id() {
  std::random_device random;
  char text[32];
  std::snprintf(text, sizeof text, "holdfast-demo-%08x", random());
  return text;
}

// A scene that cannot go on is one that failed; the next one plays all the same.
asio::awaitable<void> play(stage& on, scene what) {
  std::string expected, seen;
  try {
    co_await what(on);
  } catch (const scene_failed& failed) {
    expected = failed.expected;
    seen = failed.what();
  } catch (const std::exception& failed) {
    expected = "no exception";
    seen = failed.what();
  }
  if (!expected.empty()) {
    co_await on.pause(50ms);  // when all were interrupted, so are we, and what the workers say then is no failure
    on.judge.check(false, expected, seen);
    on.judge.verdict({});
  }
  on.clear();
}

asio::awaitable<void> play_all(stage& on, std::vector<scene> scenes) {
  on.shown.heading();
  for (auto* one : scenes) co_await play(on, one);
  co_await on.check_nothing_is_left();
}

asio::awaitable<void> play_until_interrupted(stage& on, std::vector<scene> scenes) {
  for (;;) {
    co_await play_all(on, scenes);
    co_await on.pause(2s);
  }
}

/// `holdfast serve` at the server of the scenes. The URL is in its environment, because it may have a password.
test::child_process start_page(stage& on, const std::string& program, const std::string& url) {
  test::child_process::options serve;
  serve.executable = program;
  serve.argv = {"holdfast", "serve", "--listen", "127.0.0.1:0"};
  serve.environment = {"HOLDFAST_URL=" + url};
  test::child_process page(serve);
  const auto address = page.read_line(10s);
  if (!address) throw std::runtime_error("the page cannot be opened: see above");
  on.shown.note("The page: " + *address + "   Ctrl-C ends it.\n");
  return page;
}

int report(stage& on, std::size_t scenes) {
  const auto failed = on.judge.failed_scenes();
  char time[32];
  std::snprintf(time, sizeof time, "%.1f s", on.shown.since_start().count());
  const auto text = failed == 0
                        ? std::string(scenes == 1 ? "The scene is ok, " : "All scenes are ok, ") + std::string(time)
                        : counted(static_cast<std::size_t>(failed), "scene") + " FAILED, " + time;
  on.shown.note("\n" + text);
  return failed == 0 ? 0 : 1;
}

int run(const arguments& given) {
  asio::io_context io{1};
  int interrupted = 0;
  asio::cancellation_signal stop;
  asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
  auto on_signal = [&](const boost::system::error_code& error, int number) {
    if (error) return;
    interrupted = number;
    stop.emit(asio::cancellation_type::terminal);
  };
  signals.async_wait(on_signal);
  ::signal(SIGPIPE, SIG_IGN);

  const test::temp_folder folder("holdfast-demo-");
  std::optional<test::real_redis> redis;
  if (given.url.empty()) redis.emplace();

  stage::setting where;
  where.url = redis ? redis->unix_url() : given.url;
  where.folder = folder.path();
  where.id = random_id();
  const auto* prefix = detail::parse_url(where.url).find("key_prefix");
  where.prefix = (prefix != nullptr ? *prefix : "") + where.id + ":";
  where.server = redis ? redis->pid() : -1;
  where.broken_owner_check = given.broken_owner_check;
  stage on(io.get_executor(), where);
  std::optional<test::child_process> page;
  if (!given.page.empty()) page.emplace(start_page(on, given.page, where.url));
  std::exception_ptr failed;
  auto finished = [&](std::exception_ptr why) {
    failed = why;
    signals.cancel();
  };
  auto played = page ? play_until_interrupted(on, given.scenes) : play_all(on, given.scenes);
  asio::co_spawn(io, std::move(played), asio::bind_cancellation_slot(stop.slot(), finished));
  io.run();
  if (interrupted != 0) {
    on.shown.note("interrupted");
    return 128 + interrupted;
  }
  if (failed) std::rethrow_exception(failed);
  return report(on, given.scenes.size());
}

int start(const std::vector<std::string>& given) {
  if (const auto work = job::parse(given)) return run_worker(*work);
  if (given.size() == 1 && (given[0] == "--help" || given[0] == "-h")) {
    std::cout << usage;
    return 0;
  }
  const auto parsed = parse(given);
  if (!parsed) {
    std::cerr << usage;
    return usage_error;
  }
  if (const auto wrong = what_is_wrong_with(parsed->url); !wrong.empty()) {
    std::cerr << "holdfast_demo: " << wrong << '\n';
    return usage_error;
  }
  if (parsed->url.empty() && !test::real_redis::available()) {
    std::cerr << "skipped: no redis-server, valkey-server or redis-check-rdb in PATH; --url URL takes any other\n";
    return no_server;
  }
  return run(*parsed);
}

}  // namespace
}  // namespace holdfast::demo

int main(int argc, char** argv) {
  try {
    return holdfast::demo::start({argv + 1, argv + argc});
  } catch (const std::exception& failed) {
    std::cerr << "holdfast_demo: " << failed.what() << '\n';
    return 1;
  }
}
