// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/keep_options.hpp>

#include "cli/access.hpp"

/// The subcommands. Each returns its exit status, and throws holdfast::error and usage_error.
namespace holdfast::cli {

namespace asio = boost::asio;
using std::chrono::milliseconds;

struct free_options {
  access_options access;
  lock_options_given lock;
};
asio::awaitable<int> free_lock(free_options options);

struct inspect_options {
  access_options access;
  std::string name;
};
asio::awaitable<int> inspect(inspect_options options);

struct list_options {
  access_options access;
  std::string pattern = "*";
  bool any_string = false;
};
asio::awaitable<int> list(list_options options);

/// How long a lock is waited for, and its terms.
struct acquire_options {
  access_options access;
  lock_options_given lock;
  std::optional<milliseconds> wait{};  // empty: without a limit
  bool no_wait = false;
  std::optional<milliseconds> ttl{}, max_hold{};
  std::string note;
};

struct hold_options {
  acquire_options acquire;
  std::optional<milliseconds> duration{};
};
asio::awaitable<int> hold(hold_options options);

struct wait_options {
  access_options access;
  lock_options_given lock;
  std::optional<milliseconds> wait{};
};
asio::awaitable<int> wait(wait_options options);

enum class on_lost { term, kill, warn };
struct run_options {
  acquire_options acquire;
  on_lost lost = on_lost::term;
  milliseconds grace{5'000};
  std::vector<std::string> command;
};
asio::awaitable<int> run(run_options options);

struct worker_options {
  run_options run;
  restart_policy restart = restart_policy::always;
  milliseconds pause{100}, backoff_cap{30'000};
};
asio::awaitable<int> keep(worker_options options);

struct watch_options {
  access_options access;
  std::string pattern = "*";
  milliseconds every{1'000};
  std::optional<milliseconds> duration{};
};
asio::awaitable<int> watch(watch_options options);

struct doctor_options {
  access_options access;
  std::string checked_user;  // empty: the user that asks
  milliseconds idle{0};
};
asio::awaitable<int> doctor(doctor_options options);

struct acl_options {
  access_options access;
  std::string user = "locker", prefix, version;
  bool fenced = false, simple = false, fair = false, permits = false, shared = false, latch = false;
  bool election = false, notes = false, braces = false, operates = false;
};
asio::awaitable<int> acl(acl_options options);

struct serve_options {
  access_options access;
  std::string listen = "127.0.0.1:8787";
  bool may_free = false;
  std::string proxied_host{};  // as gate_settings
};
asio::awaitable<int> serve(serve_options options);

int version(bool with_dependencies, bool as_json);

}  // namespace holdfast::cli
