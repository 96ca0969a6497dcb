// SPDX-License-Identifier: BSL-1.0
#include "bench/redlock_node.hpp"

#include <filesystem>
#include <sstream>

#include "bench/scenario.hpp"
#include "support/child_process.hpp"

namespace holdfast::bench::redlock_node {
namespace {

using namespace std::chrono_literals;

constexpr auto fetch_limit = 120s;
constexpr auto source = HOLDFAST_REDLOCK_SOURCE, built = HOLDFAST_REDLOCK_BUILD;

}  // namespace

std::string missing() {
  for (const std::string program : {"node", "npm"})
    if (test::find_executable(program).empty()) return "no " + program + " in PATH";
  std::filesystem::create_directories(built);
  test::child_process npm({.executable = "npm",
                           .argv = {"npm", "install", "--prefix", built, "--silent", "--prefer-offline", "--no-audit",
                                    "--no-fund", "redlock@5.0.0-beta.2", "ioredis@5"}});
  npm.close_input();
  npm.read_all(fetch_limit);
  const auto status = npm.wait(5s);  // its output ends a moment before it
  if (!status) return "npm was not ready in time";
  return status == 0 ? "" : "npm cannot fetch redlock";
}

double renewals(const std::string& socket, long count, milliseconds ttl, milliseconds before, milliseconds measured) {
  test::child_process node(
      {.executable = "node",
       .argv = {"node", std::string(source) + "/hold.js", socket, std::to_string(count), std::to_string(ttl.count()),
                std::to_string(before.count()), std::to_string(measured.count())},
       .environment = {std::string("NODE_PATH=") + built + "/node_modules"}});
  node.close_input();
  std::istringstream said(node.read_all(plan::patience));
  double seconds = 0;
  long lost = 0;
  if (!(said >> seconds >> lost)) throw not_finished("redlock ended without a result");
  if (lost > 0) throw not_finished("redlock has lost " + std::to_string(lost));
  return seconds;
}

}  // namespace holdfast::bench::redlock_node
