// SPDX-License-Identifier: BSL-1.0
// interop_servers: servers for a test that is no C++ program. Prints `ready`, then answers each line of its input by
// a line. The servers end with the input. Exit status 77: there is no Redis server.
//
//   one               port of a server of its own
//   several COUNT     ports of so many of them
//   sentinel          ports of three sentinels, which watch `mymaster` and its two replicas
//   cluster           ports of three primaries and their replicas
//   failover          ok, when another server is the primary, and has two replicas
//   kill PORT         ok, when this server of `one` or `several` is dead
#include <deque>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/real_cluster.hpp"
#include "support/real_redis.hpp"
#include "support/real_sentinel.hpp"

namespace {

using namespace holdfast::test;

class servers {
 public:
  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    unsigned number = 1;
    words >> verb >> number;
    if (verb == "one" || verb == "several") return ports_of_new_servers(verb == "one" ? 1 : number);
    if (verb == "sentinel") return ports_of_sentinels();
    if (verb == "cluster") return ports_of_cluster();
    if (verb == "failover") return fail_over();
    if (verb == "kill") return kill(number);
    throw std::invalid_argument("unknown command: " + line);
  }

 private:
  std::string ports_of_new_servers(unsigned count) {
    std::string ports;
    for (; count > 0; --count) ports += std::to_string(single_.emplace_back(redis_options{.tcp = true}).port()) + ' ';
    return ports;
  }

  std::string ports_of_sentinels() {
    if (!sentinel_) sentinel_.emplace();
    std::string ports;
    for (std::size_t n = 0; n < real_sentinel::sentinels; ++n)
      ports += std::to_string(sentinel_->sentinel(n).port()) + ' ';
    return ports;
  }

  std::string ports_of_cluster() {
    if (!cluster_) cluster_.emplace();
    std::string ports;
    for (std::size_t n = 0; n < real_cluster::nodes; ++n) ports += std::to_string(cluster_->node(n).port()) + ' ';
    return ports;
  }

  // Both replicas have everything, before and after: the test is about clients, not about asynchronous replication.
  std::string fail_over() {
    sentinel_.value().replicate();
    sentinel_->fail_over();
    sentinel_->mend();
    return "ok";
  }

  std::string kill(unsigned port) {
    for (auto& server : single_)
      if (server.port() == port) {
        server.kill();
        return "ok";
      }
    throw std::invalid_argument("no server with this port");
  }

  std::deque<real_redis> single_;
  std::optional<real_sentinel> sentinel_;
  std::optional<real_cluster> cluster_;
};

}  // namespace

int main() {
  if (!real_redis::available()) return 77;
  std::cout << "ready" << std::endl;
  servers all;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << all.answer(line) << std::endl;
    } catch (const std::exception& e) {
      std::cerr << e.what() << '\n';
      std::cout << "error" << std::endl;
    }
  }
}
