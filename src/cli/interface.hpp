// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/commands.hpp"

namespace holdfast::cli {

/// The options of all subcommands. The manual and the completions are made of the same texts.
class interface {
 public:
  interface();
  interface(const interface&) = delete;
  interface& operator=(const interface&) = delete;

  /// `arguments`: without the program's name. Throws CLI::ParseError, also for --help, and usage_error.
  void read(std::vector<std::string> arguments);
  /// Does what was read, and returns the exit status.
  int perform();
  CLI::App& app() noexcept { return app_; }

 private:
  using chosen_command = std::function<asio::awaitable<int>()>;

  CLI::App* add(const char* name, const char* text, chosen_command command);
  void add_locks();
  void add_jobs();
  void add_views();
  void add_page();
  void add_care();
  void add_help();

  CLI::App app_;
  chosen_command chosen_;
  std::function<int()> at_once_;  // a subcommand that talks to nobody
  free_options free_;
  inspect_options inspect_;
  list_options list_;
  hold_options hold_;
  wait_options wait_;
  run_options run_;
  worker_options keep_;
  watch_options watch_;
  doctor_options doctor_;
  acl_options acl_;
  serve_options serve_;
  bool with_dependencies_ = false, version_as_json_ = false;
  std::string shell_;
};

}  // namespace holdfast::cli
