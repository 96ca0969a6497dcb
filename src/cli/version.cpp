// SPDX-License-Identifier: BSL-1.0
#include <boost/version.hpp>

#include <string>
#include <utility>

#include <CLI/Version.hpp>
#include <holdfast/version.hpp>

#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

int version(bool with_dependencies, bool as_json) {
  const std::pair<const char*, std::string> dependencies[] = {
      {"boost", std::to_string(BOOST_VERSION / 100'000) + '.' + std::to_string(BOOST_VERSION / 100 % 1000) + '.' +
                    std::to_string(BOOST_VERSION % 100)},
      {"cli11", CLI11_VERSION},
      {"hiredis", HOLDFAST_CLI_HIREDIS},
      {"openssl", HOLDFAST_CLI_OPENSSL},
      {"compiler", HOLDFAST_CLI_COMPILER},
  };
  if (as_json) {
    json::object line;
    line["version"] = holdfast::version;
    if (with_dependencies)
      for (const auto& [name, text] : dependencies) line[name] = text;
    print(line);
    return done;
  }
  print("holdfast " + std::string(holdfast::version));
  if (with_dependencies)
    for (const auto& [name, text] : dependencies) print(std::string(name) + ' ' + text);
  return done;
}

}  // namespace holdfast::cli
