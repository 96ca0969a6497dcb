// SPDX-License-Identifier: BSL-1.0
/// The command line `holdfast`, for those who run locks.
///
/// Decision: it is a room of `src` above the public headers, so that the layer check watches it. Locks are taken and
/// freed by the public API alone. `cli/server` reads the rest of a server: SCAN, CLIENT LIST, INFO, ACL.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "cli/exit_status.hpp"
#include "cli/interface.hpp"
#include "cli/output.hpp"

int main(int count, char** texts) {
  using namespace holdfast;
  const std::vector<std::string> arguments(texts + 1, texts + count);
  int status = cli::broken;
  try {
    cli::interface commands;
    try {
      commands.read(arguments);
      status = commands.perform();
    } catch (const CLI::ParseError& end) {
      if (end.get_exit_code() == 0) {
        commands.app().exit(end);
        status = cli::done;
      } else {
        cli::complain(cli::without_secrets(cli::shown(end.what()), arguments) + " (see --help)");
        status = cli::misused;
      }
    }
  } catch (const cli::usage_error& wrong) {
    cli::complain(cli::without_secrets(wrong.what(), arguments));
    status = cli::misused;
  } catch (const boost::system::system_error& failed) {
    status = cli::status_of(failed.code());
    const bool of_server = status == cli::unreachable || status == cli::not_permitted;
    cli::complain(std::string(failed.what()) + (of_server                ? " (see holdfast doctor)"
                                                : status == cli::no_lock ? " (see holdfast inspect)"
                                                                         : ""));
  } catch (const std::exception& failed) {
    cli::complain(failed.what());
  }
  if (!cli::output_is_complete()) {
    cli::complain("the output cannot be written");
    return cli::not_written;
  }
  return status;
}
