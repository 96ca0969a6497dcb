// SPDX-License-Identifier: BSL-1.0
// Whatever goes wrong is taken for "not acquired, try again", at once and without end: a wrong permission looks like a
// busy lock, and the server is kept busy saying so.
#include "stage.hpp"

namespace {

bool try_lock(plain_redis& redis) {
  try {
    return redis("SET", "job", "A", "NX", "PX", 30'000) == "OK";
  } catch (const std::exception&) {
    return false;  // whatever it was
  }
}

/// How many commands the server has refused since the last time.
int refused(plain_redis& admin) {
  const auto text = admin("INFO", "commandstats").to_string();
  const std::string_view word = "rejected_calls=";
  int sum = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    sum += std::stoi(&text[at + word.size()]);
  admin("CONFIG", "RESETSTAT");
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis admin(url), redis(url);
  admin("ACL", "SETUSER", "app", "on", ">secret", "resetkeys", "~reports:*", "&*", "+@all");
  redis("AUTH", "app", "secret");

  for (int tries = 0; tries < 1000 && !try_lock(redis); ++tries) {  // the real one has no 1000
  }
  std::cout << "wrong: refused " << refused(admin) << " times, and it looks busy\n";

  process a("redis+unix://app:secret@" + url.substr(std::string_view("redis+unix://").size()));
  const auto said = a.run(holdfast::as_result(a.redis.simple_mutex("job").lock()));
  std::cout << "right: refused " << refused(admin) << " times, and it says: " << said.error().message() << '\n';
}

// Output:
//   wrong: refused 1000 times, and it looks busy
//   right: refused 2 times, and it says: permission denied by Redis
