// SPDX-License-Identifier: BSL-1.0
#include "support/real_redis.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "support/least_rights.hpp"
#include "support/net.hpp"
#include "support/raw_client.hpp"
#include "support/skip.hpp"
#include "support/temp_folder.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto server_limit = 20s;  // sanitizer builds on a busy machine

struct program {
  std::string path;
  std::string name;  // argv[0]: redis-check-rdb is the server under another name, and looks at it
};

std::optional<program> find_server() {
  if (const char* given = std::getenv("HOLDFAST_TEST_REDIS"); given != nullptr && *given != 0)
    return program{given, "redis-server"};
  for (const char* name : {"redis-server", "valkey-server"})
    if (auto path = find_executable(name); !path.empty()) return program{path, name};
  if (auto path = find_executable("redis-check-rdb"); !path.empty()) return program{path, "redis-server"};
  return std::nullopt;
}

/// "7.0.15": behind v= in the line of --version.
std::string version_of(const program& server) {
  child_process asked({.executable = server.path, .argv = {server.name, "--version"}});
  const auto line = asked.read_line(server_limit).value_or("");
  const auto at = line.find("v=");
  return at == line.npos ? "" : line.substr(at + 2, line.find(' ', at) - at - 2);
}

std::string version_of_server() {
  static const auto version = version_of(find_server().value());
  return version;
}

constexpr std::string_view preload = "LD_PRELOAD=";

std::string joined(std::string text, const std::vector<std::string>& words) {
  for (const auto& word : words) text += ' ' + word;
  return text;
}

bool has_loaded(pid_t process, const std::string& library) {
  std::ifstream file("/proc/" + std::to_string(process) + "/maps");
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  return maps.find(library) != maps.npos;
}

}  // namespace

bool real_redis::available() { return find_server().has_value(); }

real_redis::real_redis(redis_options options) : options_(std::move(options)), owner_(::getpid()) {
  folder_ = make_temp_folder("holdfast-redis-");
  socket_path_ = folder_ + "/s";
  std::filesystem::create_directory(folder_ + "/data");
  if (least_rights::in_force()) {
    users_ = least_rights::users(options_.service_url, options_.sentinel, version_of_server(), password());
    if (!options_.configuration.empty()) {  // the server writes it anew, with its users
      for (const auto& user : users_) options_.configuration += joined("user", user) + '\n';
      users_.clear();
    }
  }
  if (!options_.configuration.empty()) std::ofstream(folder_ + "/configuration") << options_.configuration;
  try {
    pick_ports();
    start();
  } catch (...) {
    process_.reset();
    remove_folder(folder_);
    throw;
  }
}

real_redis::~real_redis() {
  if (::getpid() != owner_) return;
  if (least_rights::in_force() && running() && !stopped_) tell_refusals();
  process_.reset();
  remove_folder(folder_);
}

std::vector<std::string> real_redis::login() const {
  if (least_rights::in_force()) return {"AUTH", least_rights::rig_user, least_rights::rig_password};
  if (!password().empty()) return {"AUTH", password()};
  return {};
}

void real_redis::tell_refusals() const noexcept {
  try {
    raw_client log(*this);
    log.patience = 2s;
    const auto refused = log("ACL", "LOG");
    for (const auto& entry : refused.array())
      if (entry.field("username") == "default" && entry.field("reason") != "auth")
        std::cout << "refused by the ACL: " << *entry.field("reason") << ' ' << *entry.field("object") << " ("
                  << *entry.field("context") << ")\n";
  } catch (const std::exception&) {
    return;  // a server that is about to end
  }
}

void real_redis::pick_ports() {
  if (options_.tcp) port_ = free_loopback_port();
  if (options_.tls) do
      tls_port_ = free_loopback_port();
    while (tls_port_ == port_);
}

std::string real_redis::unix_url() const {
  return "redis+unix://" + (password().empty() ? "" : ":" + percent_encoded(password()) + "@") +
         percent_encoded(socket_path_, "/");
}
std::string real_redis::tcp_url() const {
  return "redis://" + (password().empty() ? "" : ":" + percent_encoded(password()) + "@") +
         "127.0.0.1:" + std::to_string(port_);
}
std::string real_redis::tls_url() const {
  return "rediss://" + (password().empty() ? "" : ":" + percent_encoded(password()) + "@") +
         "127.0.0.1:" + std::to_string(tls_port_);
}
std::string real_redis::url() const { return options_.tls ? tls_url() : options_.tcp ? tcp_url() : unix_url(); }

std::string real_redis::log() const {
  std::ifstream file(folder_ + "/log");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> real_redis::command_line() const {
  std::vector<std::string> all{
      "--unixsocket",        socket_path_, "--unixsocketperm", "700",    "--bind", "127.0.0.1",    "--port",
      std::to_string(port_), "--dir",      folder_ + "/data",  "--save", "",       "--appendonly", "no",
      "--daemonize",         "no"};
  if (!options_.configuration.empty()) all.insert(all.begin(), folder_ + "/configuration");
  if (options_.tls) {
    const auto& files = *options_.tls;
    for (const auto& argument :
         {std::string("--tls-port"), std::to_string(tls_port_), std::string("--tls-cert-file"), files.certificate,
          std::string("--tls-key-file"), files.key, std::string("--tls-ca-cert-file"), files.ca,
          std::string("--tls-auth-clients"), std::string(files.require_client_certificate ? "yes" : "no")})
      all.push_back(argument);
  }
  if (!password().empty()) all.insert(all.end(), {"--requirepass", password()});
  for (const auto& user : users_) {
    all.push_back("--user");
    all.insert(all.end(), user.begin(), user.end());
  }
  if (!users_.empty())
    all.insert(all.end(), {"--masteruser", least_rights::rig_user, "--masterauth", least_rights::rig_password});
  all.insert(all.end(), options_.arguments.begin(), options_.arguments.end());
  return all;
}

void real_redis::start() {
  const auto deadline = steady_clock::now() + server_limit;
  const bool first = !process_;
  for (int attempt = 0; !try_start(); ++attempt) {
    const auto text = log().substr(log_seen_);
    // Redis 6 knows no such option; later ones find nothing that does it.
    if (text.find(">>> 'tls-port") != text.npos || text.find("Failed finding TLS support") != text.npos)
      skip("this server was built without TLS");
    const bool taken = text.find("Address already in use") != text.npos;
    if (!taken || steady_clock::now() > deadline || (first && attempt == 10))
      throw std::runtime_error("redis-server does not start:\n" + text);
    if (first) pick_ports();
  }
  for (const auto& e : options_.environment)
    if (e.starts_with(preload) && !has_loaded(process_->pid(), e.substr(preload.size())))
      skip("this server is linked statically: its clock cannot be set");
}

// True when it answers; false when it ended before. Redis binds its ports before the unix socket, and ends if it
// cannot: they are its own.
bool real_redis::try_start() {
  const auto server = find_server();
  if (!server) throw std::runtime_error("no redis-server found");
  log_seen_ = log().size();
  std::filesystem::remove(socket_path_);
  child_process::options what;
  what.executable = server->path;
  what.argv = command_line();
  what.argv.insert(what.argv.begin(), server->name);
  what.environment = options_.environment;
  what.output_file = folder_ + "/log";
  what.pipes = false;
  process_.emplace(std::move(what));
  stopped_ = false;

  const auto deadline = steady_clock::now() + server_limit;
  for (auto pause = 1ms; !answers(); pause = std::min(2 * pause, 8ms)) {
    if (process_->wait(pause)) return false;
    if (steady_clock::now() > deadline) {
      process_->kill();
      throw std::runtime_error("redis-server does not answer:\n" + log().substr(log_seen_));
    }
  }
  return true;
}

bool real_redis::answers() const {
  try {
    raw_client probe(socket_path_);
    probe.patience = 2s;
    if (const auto words = login(); !words.empty()) probe.call(words);  // else NOAUTH would hide LOADING
    const auto reply = probe.call({"PING"});
    return !options_.wait_until_loaded || !reply.is_error() || !reply.text.starts_with("LOADING");
  } catch (const std::exception&) {
    return false;  // not listening yet
  }
}

void real_redis::stop() {
  process_->stop();
  stopped_ = true;
}
void real_redis::cont() {
  process_->cont();
  stopped_ = false;
}
void real_redis::kill() { process_->kill(); }

void real_redis::shutdown() {
  process_->signal(SIGTERM);
  cont();
  if (!process_->wait(server_limit))
    throw std::runtime_error("redis-server does not shut down:\n" + log().substr(log_seen_));
}

void real_redis::restart() {
  kill();
  start();
}

void real_redis::restart_empty() {
  kill();
  std::filesystem::remove_all(folder_ + "/data");
  std::filesystem::create_directory(folder_ + "/data");
  start();
}

}  // namespace holdfast::test
