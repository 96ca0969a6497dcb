// SPDX-License-Identifier: BSL-1.0
#include "cli/interface.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <charconv>
#include <exception>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>  // its validators are in different headers of different versions
#include <holdfast/version.hpp>

#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/reference.hpp"

namespace holdfast::cli {
namespace {

/// "5", "0.5", "300ms", "2m": seconds without a unit.
milliseconds read_duration(const std::string& text) {
  static constexpr std::pair<std::string_view, double> units[] = {{"", 1'000},   {"ms", 1},       {"s", 1'000},
                                                                  {"m", 60'000}, {"min", 60'000}, {"h", 3'600'000}};
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto unit =
      std::find_if(std::begin(units), std::end(units), [&](const auto& known) { return known.first == rest; });
  if (failed != std::errc{} || unit == std::end(units) || !(number >= 0 && number <= 1e9))
    throw CLI::ValidationError("a duration is a number of seconds, or a number with ms, s, m or h");
  return milliseconds(static_cast<milliseconds::rep>(number * unit->second));
}

template <class Duration>
void add_duration(CLI::App& command, const char* flags, Duration& into, const char* text) {
  command
      .add_option_function<std::string>(
          flags, [&into](const std::string& given) { into = read_duration(given); }, text)
      ->type_name("SEC");
}

void add_access(CLI::App& command, access_options& access) {
  command
      .add_option("--url", access.urls,
                  "where the locks are: redis://host:6379/0, rediss://, redis+unix:///path, "
                  "redis+sentinel://host,host/name or redis+cluster://host; several for a red_lock. "
                  "Default: HOLDFAST_URL, then redis://localhost")
      ->type_name("URL")
      ->allow_extra_args(false);
  command.add_option("--user", access.user, "ACL user. Default: HOLDFAST_USER")->type_name("NAME");
  command
      .add_option("--password-file", access.password_file,
                  "file whose first line is the password. Default: HOLDFAST_PASSWORD")
      ->type_name("FILE");
  command.add_flag("--json", access.json, "one JSON object a line, described by docs/cli.schema.json");
}

void add_lock(CLI::App& command, lock_options_given& lock, bool is_taken) {
  command.add_option("name", lock.name, "name of the lock")->required()->type_name("NAME");
  if (is_taken) command.add_flag("--fenced", lock.fenced, "a fenced_mutex: the holder gets a token");
  command
      .add_option(
          "--permits", lock.permits,
          "an expirable_semaphore: at most K permits of the name are out at once. K counts only if Redis has no "
          "number. free needs it if the counter is missing")
      ->type_name("K")
      ->check(CLI::Range(1U, 2'147'483'647U));
  if (is_taken)
    command.add_option("--take", lock.take, "permits that are taken at once, 1 to 100, at most K. Default: 1")
        ->type_name("N")
        ->check(CLI::Range(1U, expirable_semaphore::most_at_once));
  command.add_flag("--simple", lock.simple, "a simple_mutex: one string key, as other languages have it");
  command.add_flag("--fair", lock.fair, "a fair_mutex: first come, first served, in all processes");
  command.add_flag("--red", lock.red, "a red_lock, granted by a majority of the --url given");
}

void add_sides(CLI::App& command, lock_options_given& lock) {
  command.add_flag("--shared", lock.shared, "a shared_mutex, to read: beside other readers, and not beside a writer");
  command.add_flag("--exclusive", lock.exclusive, "a shared_mutex, to write: alone. A mutex is another kind of lock");
}

void add_wait(CLI::App& command, acquire_options& acquire) {
  add_duration(command, "-w,--wait", acquire.wait, "wait at most this long for a busy lock. Default: without a limit");
  command.add_flag("-n,--no-wait", acquire.no_wait, "do not wait for a busy lock: exit status 75")->excludes("--wait");
}

void add_terms(CLI::App& command, acquire_options& acquire) {
  add_access(command, acquire.access);
  add_lock(command, acquire.lock, true);
  add_sides(command, acquire.lock);
  add_duration(command, "--ttl", acquire.ttl,
               "how long Redis keeps the lock without renewal, from 0.1 s to 24 h. Default: 30 s. It is renewed");
  add_duration(command, "--max-hold", acquire.max_hold, "renew for this long at most; the lock is lost afterwards");
  command
      .add_option("--note", acquire.note,
                  "what the lock is for: list and inspect show it, and since when it is held. At most 200 bytes; not "
                  "with --permits or --shared")
      ->type_name("TEXT");
}

/// "term": on_lost::term.
template <class Policy>
void add_policy(CLI::App& command, const char* flag, Policy& into,
                const std::vector<std::pair<std::string, Policy>>& policies, const char* text) {
  std::vector<std::string> names;
  for (const auto& policy : policies) names.push_back(policy.first);
  command
      .add_option_function<std::string>(
          flag,
          [&into, policies](const std::string& given) {
            for (const auto& [name, policy] : policies)
              if (name == given) into = policy;
          },
          text)
      ->type_name("POLICY")
      ->check(CLI::IsMember(names));
}

void add_loss(CLI::App& command, run_options& run) {
  add_policy<on_lost>(
      command, "--on-lost", run.lost, {{"term", on_lost::term}, {"kill", on_lost::kill}, {"warn", on_lost::warn}},
      "what a command gets whose lock is lost: term (SIGTERM, after --grace SIGKILL), kill, or warn (a message). "
      "Default: term");
  add_duration(command, "--grace", run.grace, "time between SIGTERM and SIGKILL. Default: 5 s");
}

constexpr const char* environment_text =
    "The command finds HOLDFAST_LOCK_NAME, HOLDFAST_LOCK_KIND, HOLDFAST_LOCK_ID, with --fenced "
    "HOLDFAST_FENCE_TOKEN, and HOLDFAST_LOST_FD in its environment. HOLDFAST_LOST_FD is a pipe that ends "
    "when the lock is lost. Signals go to the command's process group. If holdfast is killed, the command "
    "is killed, and the lock stays until its TTL ends. ";

std::string help_text() {
  std::string text;
  for (const auto& [title, lines] : help_sections()) {
    text.append(title).append(":\n");
    std::size_t width = 0;
    for (const auto& line : lines) width = std::max(width, line.title.size());
    for (const auto& line : lines)
      text.append("  ").append(line.title).append(width + 2 - line.title.size(), ' ').append(line.text).append("\n");
    text += '\n';
  }
  return text;
}

}  // namespace

interface::interface() : app_("Distributed locks on Redis, for those who run them.", "holdfast") {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", "holdfast " + std::string(holdfast::version), "Print the version");
  add_jobs();
  add_locks();
  add_views();
  add_page();
  add_care();
  add_help();
  app_.footer(help_text());  // subcommands that are added later would have it, too
}

CLI::App* interface::add(const char* name, const char* text, chosen_command command) {
  auto* added = app_.add_subcommand(name, text);
  added->callback([this, command = std::move(command)] { chosen_ = command; });
  return added;
}

void interface::add_jobs() {
  auto* command = add("run", "Run a command under a lock: holdfast run NAME [options] -- COMMAND [ARG...]",
                      [this] { return run(run_); });
  add_terms(*command, run_.acquire);
  add_wait(*command, run_.acquire);
  add_loss(*command, run_);
  command->footer(std::string(environment_text) +
                  "The exit status is the command's, 75 if the lock is busy, 79 if it was lost.");

  command = add("keep", "Keep a command running on one of N hosts: holdfast keep NAME [options] -- COMMAND [ARG...]",
                [this] { return keep(keep_); });
  add_terms(*command, keep_.run.acquire);
  add_loss(*command, keep_.run);
  add_policy<restart_policy>(*command, "--restart", keep_.restart,
                             {{"always", restart_policy::always},
                              {"on-failure", restart_policy::on_failure},
                              {"never", restart_policy::never}},
                             "whether a command that has ended runs again: always, on-failure (after a status other "
                             "than 0, a signal or a loss), or never. Default: always");
  add_duration(*command, "--pause", keep_.pause, "time after a command that ended with 0. Default: 0.1 s");
  add_duration(
      *command, "--max-backoff", keep_.backoff_cap,
      "longest time after a failure, from 2 s to 24 h. The first is 0.1 s, and each is twice as long. Default: "
      "30 s");
  command->footer(std::string(environment_text) +
                  "Between two runs the lock is free for the other hosts. INT, TERM and QUIT end the command, and "
                  "holdfast with it: the exit status is the command's, or 128 + N if none runs. With on-failure it is "
                  "0, with never the command's, 79 if the lock was lost. A command that cannot be started ends "
                  "holdfast, with 126 or 127.");
}

void interface::add_locks() {
  auto* command = add("hold", "Hold a lock until a signal comes", [this] { return hold(hold_); });
  add_terms(*command, hold_.acquire);
  add_wait(*command, hold_.acquire);
  add_duration(*command, "--for", hold_.duration, "release it after this time");

  command = add("wait",
                "Wait until a lock is free, without taking it; with --permits one permit; with --shared until nobody "
                "writes",
                [this] { return wait(wait_); });
  add_access(*command, wait_.access);
  add_lock(*command, wait_.lock, false);
  add_sides(*command, wait_.lock);
  add_duration(*command, "-w,--wait", wait_.wait, "wait at most this long. Default: without a limit");

  command = add("free", "Break the hold of any owner, and wake waiters", [this] { return free_lock(free_); });
  add_access(*command, free_.access);
  add_lock(*command, free_.lock, false);
  command->footer(
      "The holder learns of it when it renews, within a third of its TTL. Until then both may work: stop its process "
      "first if that would do harm. A command under holdfast run is ended then. A key that holds other data is "
      "refused, "
      "and a string of another program without --simple. Of a semaphore all permits come back: more than K may work "
      "until the holders renew. Of a shared_mutex the writer or all readers end.");
}

void interface::add_views() {
  auto* command = add("list", "List the locks that are held, and the semaphores with a counter and permits out",
                      [this] { return list(list_); });
  add_access(*command, list_.access);
  command->add_option("pattern", list_.pattern, "names, with * ? [ab] as SCAN has them. Default: all")
      ->type_name("PATTERN");
  command->add_flag("--any-string", list_.any_string,
                    "also strings with a TTL that other programs wrote: locks of other libraries, and data");
  command->footer("For the columns: holdfast inspect --help.");

  command =
      add("inspect",
          "Show one lock: holder, process, count, since when, TTL, token, waiters, note; or a semaphore: "
          "permits; or a shared_mutex: writer or readers; or an election: the leader's value, and its term as token",
          [this] { return inspect(inspect_); });
  add_access(*command, inspect_.access);
  command->add_option("name", inspect_.name, "name of the lock")->required()->type_name("NAME");
  command->footer(
      "Ask again after some seconds: a live holder has raised the TTL. It is alive, and works or hangs. A TTL "
      "falls, and the lock ends with it, if the holder is dead, stopped or cut off. So does the TTL of Redisson's "
      "permit "
      "and of a lease with a TTL of its own. TTL none: it never ends; lock() of such a lock throws corrupt_lock. "
      "The process is that of the client, of holdfast itself under holdfast run; - if it is not known. Of a semaphore "
      "the first 100 permits to end are shown, with the first half of their client's id: a permit of a dead client "
      "comes back when its TTL ends. Of a shared_mutex the read holds are shown, or 100 of them. Readers of one "
      "client that began within 5 ms share a hold.");
}

void interface::add_care() {
  auto* command = add("watch",
                      "Print a line for each lock, permit or read hold that is taken, waited for, released or ended, "
                      "and for each value that a leader proclaims",
                      [this] { return watch(watch_); });
  add_access(*command, watch_.access);
  command->add_option("pattern", watch_.pattern, "a name, or names with * ? [ab]. Default: all")->type_name("PATTERN");
  add_duration(*command, "--every", watch_.every, "time between two polls. Default: 1 s");
  add_duration(*command, "--for", watch_.duration, "end after this time. Default: at a signal");

  command = add("doctor", "Examine servers, network and permissions: OK, WARN or FAIL, and the command that mends it",
                [this] { return doctor(doctor_); });
  add_access(*command, doctor_.access);
  command->add_option("--check-user", doctor_.checked_user, "the ACL user of the service. Default: your own")
      ->type_name("NAME");
  add_duration(*command, "--idle", doctor_.idle, "leave a connection idle for this long, then ask again");

  command = add("acl", "Print the least ACL rule for a service: the --url is the service's, key_prefix included",
                [this] { return acl(acl_); });
  add_access(*command, acl_.access);
  command->add_option("--rule-for", acl_.user, "name of the ACL user. Default: locker")->type_name("NAME");
  command->add_option("--prefix", acl_.prefix, "prefix of the names. Default: key_prefix of the URL")
      ->type_name("PREFIX");
  command->add_option("--server-version", acl_.version, "Redis version. Default: the server is asked")
      ->type_name("VERSION");
  command->add_flag("--fenced", acl_.fenced, "fenced mutexes as well");
  command->add_flag("--simple", acl_.simple, "simple mutexes as well");
  command->add_flag("--fair", acl_.fair, "fair mutexes as well");
  command->add_flag("--permits", acl_.permits, "expirable semaphores as well");
  command->add_flag("--shared", acl_.shared, "shared mutexes as well");
  command->add_flag("--latch", acl_.latch, "latches as well");
  command->add_flag("--election", acl_.election, "elections as well");
  command->add_flag("--notes", acl_.notes, "notes as well: --note, and config::notes of a program");
  command->add_flag("--braces", acl_.braces, "names with a { as well");
  command->add_flag("--operator", acl_.operates, "what list, inspect, watch, serve and doctor need as well");
}

void interface::add_page() {
  auto* command =
      add("serve", "Show the locks on a page, for the browsers of this machine", [this] { return serve(serve_); });
  add_access(*command, serve_.access);
  command
      ->add_option("--listen", serve_.listen,
                   "address and port. Port 0: any. Default: 127.0.0.1:8787. Other machines need --behind-proxy")
      ->type_name("ADDRESS");
  command->add_flag("--allow-free", serve_.may_free,
                    "the page can break holds, as free does. The address that is printed has the token for it");
  command
      ->add_option("--behind-proxy", serve_.proxied_host,
                   "a proxy with TLS and users passes requests on, with this name as Host")
      ->type_name("HOST");
  command->footer(
      "It prints the address of the page when the locks have been read. It writes nothing without --allow-free. "
      "/api/locks and /api/events are for programs, /metrics for Prometheus, /healthz and /readyz for probes. INT and "
      "TERM end it.");
}

void interface::add_help() {
  auto* command = app_.add_subcommand("version", "Print the version");
  command->add_flag("--deps", with_dependencies_, "and those of the libraries");
  command->add_flag("--json", version_as_json_, "as a JSON object");
  command->callback([this] { at_once_ = [this] { return version(with_dependencies_, version_as_json_); }; });
  command = app_.add_subcommand("completion", "Print the completions for a shell");
  command->add_option("shell", shell_, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([this] { at_once_ = [this] { return print_completion(app_, shell_); }; });
  command = app_.add_subcommand("man", "Print the manual page, for man -l -");
  command->callback([this] { at_once_ = [this] { return print_manual(app_); }; });
}

void interface::read(std::vector<std::string> arguments) {
  const auto asks_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  const auto is_first = [&](const CLI::App* known) { return known->get_name() == arguments.front(); };
  if (!arguments.empty() && !arguments.front().starts_with('-') &&
      std::as_const(app_).get_subcommands(is_first).empty())
    throw usage_error("there is no subcommand '" + shown(arguments.front()) + "' (see --help)");
  // The command of `run` and `keep` is nobody's options: it is taken away before they are read.
  if (!arguments.empty() && (arguments.front() == "run" || arguments.front() == "keep")) {
    const auto verb = arguments.front();
    auto& command = verb == "run" ? run_.command : keep_.run.command;
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    if (mark != arguments.end()) command.assign(std::next(mark), arguments.end());
    arguments.erase(mark, arguments.end());
    if (command.empty() && std::none_of(arguments.begin(), arguments.end(), asks_help))
      throw usage_error(verb + " needs a command behind --: holdfast " + verb + " NAME [options] -- COMMAND [ARG...]");
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
  app_.parse(std::move(arguments));
}

int interface::perform() {
  if (at_once_) return at_once_();
  asio::io_context io(1);
  int status = broken;
  std::exception_ptr failure;
  asio::co_spawn(io, chosen_(), [&](std::exception_ptr thrown, int returned) {
    failure = std::move(thrown);
    status = returned;
  });
  io.run();
  if (failure) std::rethrow_exception(failure);
  return status;
}

}  // namespace holdfast::cli
