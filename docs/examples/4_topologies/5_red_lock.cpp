// SPDX-License-Identifier: BSL-1.0
// Three independent servers, of which two must grant a lock. A has it from the first and the second; the third was
// down. Then the third is back, and the second is restarted and has forgotten. If both voted at once, B would have a
// majority as well. So a server that was restarted has no vote until every lock that it may have forgotten is over.
#include <deque>

#include "stage.hpp"
using namespace std::chrono_literals;

void restart(const char* how, bool delayed) {
  std::deque<holdfast::test::real_redis> servers(3);
  const auto client = [&] {
    holdfast::config settings;
    for (const auto& server : servers) settings.red_lock.primaries.push_back(server.unix_url());
    settings.red_lock.delayed_restart = delayed;
    return settings;
  };
  attentive_process a(client()), b(client());
  if (delayed) a.run(holdfast::red_lock::initialise(a.redis));  // once, by an operator: the servers are new
  a.run(a.redis.connect());
  servers[2].kill();
  const auto first = a.run(a.redis.red_lock("account").lock());
  servers[2].restart();
  servers[1].restart_empty();
  const auto second = b.run(holdfast::as_result(b.redis.red_lock("account").try_lock_for(2s)));
  std::cout << how << ": A holds it: " << first.held() << ", B: ";
  if (second && *second)
    std::cout << "holds it: " << (*second)->held() << '\n';
  else
    std::cout << (second ? "busy" : second.error().message()) << '\n';
}

int main() {
  std::cout << std::boolalpha;
  restart("a vote at once", false);
  restart("a vote when all that was forgotten is over", true);
}

// Output:
//   a vote at once: A holds it: true, B: holds it: true
//   a vote when all that was forgotten is over: A holds it: true, B: no quorum
