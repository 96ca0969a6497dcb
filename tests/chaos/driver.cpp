// SPDX-License-Identifier: BSL-1.0
// One campaign: starts servers, proxies and workers, disturbs them for a while, and leaves the histories in a folder.
// It judges nothing.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chaos/arguments.hpp"
#include "chaos/cpu_steal.hpp"
#include "chaos/guarded_resource.hpp"
#include "chaos/nemesis.hpp"
#include "chaos/permit_watch.hpp"
#include "chaos/rig.hpp"
#include "chaos/stage.hpp"
#include "chaos/stranger.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int no_server_exit_code = 77, too_slow_exit_code = 75;
constexpr auto warm_up = 500ms;

void run(const arguments& given) {
  const auto seed = static_cast<std::uint64_t>(given.number("seed"));
  const auto kind = campaign_of(given.text("campaign"));
  history log(given.text("folder") + "/driver.jsonl");
  log.write("campaign")
      .add("name", to_string(kind))
      .add("servers", lock_servers(kind))
      .add("seed", seed)
      .add("turns", who_takes_turns(seed))
      .add("longest_ttl", longest_ttl(kind).count())
      .add("poll_cap", poll_cap.count());

  const cpu_steal_watch machine(given.text("folder") + "/machine.jsonl");
  stage on(kind, {given.text("worker"), given.text("peer")}, given.text("folder"), workers, seed, log);
  std::optional<permit_watch> sums;
  if (has_permits(kind)) {
    std::vector<std::string> servers;
    for (const auto* each : on.everybody()) servers.push_back(each->socket_path());
    sums.emplace(given.text("folder") + "/permits.jsonl", std::move(servers), std::string(semaphore_name),
                 permits_in_all);
  }
  std::optional<stranger> others;
  if (has_kept_locks(kind)) others.emplace(given.text("folder") + "/changes.jsonl", on.server(0).socket_path(), seed);
  nemesis trouble(on, log, seed, kind);
  guarded_resource resource(on.resource().socket_path());
  const auto start = steady_clock::now();
  const auto end = start + std::chrono::seconds(given.number("seconds"));
  std::this_thread::sleep_for(warm_up);
  // A slow machine goes on until it has done enough. One that did nothing in a whole round, with its calm, never will.
  long long before = 0, written = 0;
  try {
    do {
      before = written;
      trouble.rage();
      on.watch_until(steady_clock::now() + trouble.calm());
      written = resource.counted();
    } while (steady_clock::now() < end || (written < given.number("sections") && written > before));
  } catch (...) {
    on.keep_logs();
    throw;
  }
  others.reset();
  on.finish();
  sums.reset();
  on.keep_logs();
  on.look_for_residue();
}

}  // namespace
}  // namespace holdfast::chaos

int main(int argc, char** argv) {
  if (!holdfast::test::real_redis::available()) {
    std::cout << "skipped: no redis-server, valkey-server or redis-check-rdb in PATH" << std::endl;
    return holdfast::chaos::no_server_exit_code;
  }
  try {
    holdfast::chaos::run(holdfast::chaos::arguments(argc, argv));
    return EXIT_SUCCESS;
  } catch (const holdfast::chaos::too_slow& failed) {
    std::cerr << "driver: " << failed.what() << '\n';
    return holdfast::chaos::too_slow_exit_code;
  } catch (const std::exception& failed) {
    std::cerr << "driver: " << failed.what() << '\n';
    return EXIT_FAILURE;
  }
}
