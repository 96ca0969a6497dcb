// SPDX-License-Identifier: BSL-1.0
// What a program finds open that this process executes while it is connected.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "integration/redis_rig.hpp"
#include "redis/connector.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/net.hpp"
#include "support/tls_files.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using descriptors = std::map<int, std::string>;  // what each is: "socket:[1234]", "anon_inode:[timerfd]"

descriptors open_here() {
  descriptors all;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto what = std::filesystem::read_symlink(open, gone);
    if (!gone) all.emplace(std::stoi(open.path().filename().string()), what.string());
  }
  std::erase_if(all, [](const auto& fd) { return ::fcntl(fd.first, F_GETFD) < 0; });  // the directory's own
  return all;
}

descriptors open_in_an_executed_program() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(
      ::popen("for fd in /proc/$$/fd/*; do echo ${fd##*/} $(readlink $fd); done", "r"), ::pclose);
  if (!output) throw std::runtime_error("popen");
  std::string text;
  char some[4096];
  while (const auto size = std::fread(some, 1, sizeof some, output.get())) text.append(some, size);
  std::istringstream lines(text);
  descriptors all;
  std::string what;
  for (int fd = 0; lines >> fd && std::getline(lines >> std::ws, what);) all.emplace(fd, what);
  return all;
}

bool is_socket(const descriptors::value_type& fd) { return fd.second.starts_with("socket:"); }

/// A rig, and what has been opened since before it was made.
class observed {
 public:
  descriptors ours() const {
    auto all = open_here();
    for (const auto& fd : before_) all.erase(fd.first);
    return all;
  }
  auto sockets() const {
    const auto all = ours();
    return std::count_if(all.begin(), all.end(), is_socket);
  }
  /// Those that an executed program has as well, and a descriptor that it is meant to have.
  descriptors inherited() const {
    const unique_fd heirloom(::dup(STDIN_FILENO));
    const auto there = open_in_an_executed_program();
    if (!there.contains(heirloom.get())) throw std::runtime_error("the program does not say what it has");
    auto both = ours();
    both.erase(heirloom.get());
    std::erase_if(both, [&](const auto& fd) {
      const auto found = there.find(fd.first);
      return found == there.end() || found->second != fd.second;
    });
    return both;
  }

 private:
  const descriptors before_ = open_here();

 public:
  redis_rig rig;
};

}  // namespace

TEST_CASE("an executed program inherits no connection and no timer") {
  need_redis();
  const real_redis server({.tcp = true});
  observed o;
  const auto by_path = o.rig.connect(unix_endpoint(server.socket_path()));
  const auto by_address = o.rig.connect(tcp_endpoint("127.0.0.1", server.port()));
  const auto by_name = o.rig.connect(tcp_endpoint("localhost", server.port()));
  for (const auto& c : {by_path, by_address, by_name}) REQUIRE(o.rig.call(*c, {"PING"})->is("PONG"));
  struct : redis::subscriber {
    void on_subscribed() override { subscribed = true; }
    void on_message(std::string_view) override {}
    void on_subscribe_failed(error_code, const std::string&) override {}
    bool subscribed = false;
  } listener;
  const auto hub = o.rig.hub(unix_endpoint(server.socket_path()));
  const auto subscription = hub->subscribe("redisson_lock__channel:{c}", listener);
  REQUIRE(o.rig.until([&] { return listener.subscribed; }));
  CHECK(o.sockets() == 4);
  CHECK(o.inherited() == descriptors());
}

TEST_CASE("an executed program inherits no connection that speaks TLS") {
  need_redis();
  const tls_files files;
  redis_options options;
  options.tls = redis_options::tls_files{files.server.certificate, files.server.key, files.ca};
  const real_redis server(std::move(options));
  observed o;
  auto node = tcp_endpoint("localhost", server.tls_port());
  node.use_tls = true;
  node.tls.ca_file = files.ca;
  const auto c = o.rig.connect(node);
  REQUIRE(o.rig.call(*c, {"PING"})->is("PONG"));
  CHECK(o.sockets() == 1);
  CHECK(o.inherited() == descriptors());
}

TEST_CASE("an executed program inherits no connection that is being made and no question in plain text beside it") {
  const auto port = free_loopback_port();
  const auto silent = listen_tcp(port);  // takes connections, and never says a word
  manual_clock clock;
  manual_timers alarms(clock);
  observed o;
  auto node = tcp_endpoint("127.0.0.1", port);
  node.use_tls = true;
  const auto c = std::make_shared<redis::connector>(o.rig.services_at(clock, alarms), node);
  c->start(clock.now() + 10s, [](const auto&, const auto&) {});
  REQUIRE(o.rig.until([&] { return std::string(c->phase()) == "negotiating TLS"; }));
  CHECK(o.sockets() == 1);
  alarms.advance(1s);
  REQUIRE(o.sockets() == 2);
  CHECK(o.inherited() == descriptors());
  c->cancel();
}
