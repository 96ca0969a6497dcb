// SPDX-License-Identifier: BSL-1.0
// One server. Without a file it has forgotten the lock after a restart, and B gets it while A still believes to hold
// it; A is told when it speaks with the server again. A server that writes each command to its file forgets nothing.
#include "stage.hpp"
using holdfast::test::real_redis, holdfast::test::redis_options;

void restart(const char* how, const redis_options& options) {
  real_redis server(options);
  attentive_process a({.url = server.unix_url()}), b({.url = server.unix_url()});
  auto first = a.run(a.redis.mutex("account").lock());
  server.kill();
  server.restart();
  const auto second = b.run(b.redis.mutex("account").try_lock());
  std::cout << how << ": A holds it: " << first.held() << ", B holds it: " << second.has_value() << '\n';
  a.run_until(second ? holdfast::event_kind::lost : holdfast::event_kind::restored, "account");
  std::cout << how << ": A is told, and holds it: " << first.held() << '\n';
}

int main() {
  std::cout << std::boolalpha;
  restart("no file", {});
  redis_options safe;
  safe.arguments = {"--appendonly", "yes", "--appendfsync", "always"};
  restart("a file", safe);
}

// Output:
//   no file: A holds it: true, B holds it: true
//   no file: A is told, and holds it: false
//   a file: A holds it: true, B holds it: false
//   a file: A is told, and holds it: true
