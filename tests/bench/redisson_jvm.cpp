// SPDX-License-Identifier: BSL-1.0
#include "bench/redisson_jvm.hpp"

#include <sstream>

#include "bench/scenario.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto fetch_limit = 180s, start_limit = 30s;
constexpr auto source = HOLDFAST_REDISSON_SOURCE, built = HOLDFAST_REDISSON_BUILD;

std::vector<std::string> maven_command() {
  return {"mvn",
          "--quiet",
          "--batch-mode",
          "--file",
          std::string(source) + "/pom.xml",
          std::string("-Dout=") + built,
          "compile",
          "dependency:copy-dependencies"};
}

std::vector<std::string> java_command(const redisson_jvm::work& what) {
  const std::string folder = built;
  return {"java",
          "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
          "-classpath",
          folder + "/classes:" + folder + "/dependency/*",
          "RedissonContender",
          what.url,
          what.name,
          what.witness,
          std::to_string(what.threads),
          std::to_string(what.hold.count()),
          std::to_string(what.think.count())};
}

/// The first line with it, from there on.
std::string line_from(const std::string& text, std::string_view beginning) {
  const auto at = text.find(beginning);
  return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
}

}  // namespace

std::string redisson_jvm::missing() {
  for (const std::string program : {"java", "mvn"})
    if (test::find_executable(program).empty()) return "no " + program + " in PATH";
  test::child_process maven({.executable = "mvn", .argv = maven_command()});
  maven.close_input();
  const auto said = maven.read_all(fetch_limit);
  const auto status = maven.wait(5s);  // its output ends a moment before it
  if (!status) return "Maven was not ready in time";
  return status == 0 ? "" : "Maven cannot build it: " + line_from(said, "[ERROR]");
}

redisson_jvm::redisson_jvm(const work& what)
    : java_({.executable = "java", .argv = java_command(what)}), threads_(static_cast<std::size_t>(what.threads)) {
  if (line_until(steady_clock::now() + start_limit) != "ready") throw not_finished("the JVM is not ready");
}

void redisson_jvm::work_for(milliseconds how_long, milliseconds begins_in) {
  java_.write(std::to_string(begins_in.count()) + ' ' + std::to_string(how_long.count()) + '\n');
}

redisson_jvm::result redisson_jvm::result_until(steady_clock::time_point deadline) {
  const auto line = line_until(deadline);
  std::istringstream said(line);
  result r;
  said >> r.longest_wait;
  for (long count = 0; said >> count;) r.acquired.push_back(count);
  if (r.acquired.size() != threads_) throw not_finished("the JVM says " + line);
  r.longest_wait /= 1e9;
  return r;
}

std::string redisson_jvm::line_until(steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  auto line = java_.read_line(left);
  if (!line) throw not_finished("the JVM ended, or has not answered in time");
  return *line;
}

}  // namespace holdfast::bench
