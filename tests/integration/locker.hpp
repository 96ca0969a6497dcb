// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "integration/world.hpp"

namespace holdfast::test {

/// The user "locker" of a service whose keys begin with `app:`. It has the permissions that a header asks for, and no
/// more.
class locker {
 public:
  explicit locker(world& w) : world_(w) {}

  /// Beside those of a mutex, which is all that it has then.
  void may(const std::string& rights) {
    std::vector<std::string> command{"ACL", "SETUSER", "locker", "reset", "on", ">secret"};
    std::istringstream words(of_a_mutex + rights);
    for (std::string word; words >> word;) command.push_back(word);
    REQUIRE_FALSE(world_.eye.call(command).is_error());
  }
  client make_client() {
    return world_.make([](config& c) { c.user = "locker", c.password = "secret", c.key_prefix = "app:"; });
  }
  /// `use` returns the error of its first call that fails. It needs each of these rights.
  template <class Use>
  void check_needs(const std::vector<std::string>& rights, Use use) {
    may(all_but(rights, rights.size()));
    CHECK_FALSE(use());
    for (std::size_t n = 0; n < rights.size(); ++n) {
      INFO("without " << rights[n]);
      world_.eye("FLUSHALL");
      may(all_but(rights, n));
      CHECK(use() == errc::no_permission);
    }
  }

 private:
  static std::string all_but(const std::vector<std::string>& rights, std::size_t withheld) {
    std::string all;
    for (std::size_t n = 0; n < rights.size(); ++n)
      if (n != withheld) all += rights[n] + ' ';
    return all;
  }

  static constexpr const char* of_a_mutex =
      "resetkeys resetchannels ~app:* &redisson_lock__channel:{app:* "
      "-@all +eval +evalsha +exists +hexists +hget +hset +hdel +hlen +hgetall +pttl +pexpire +publish +del "
      "+subscribe +unsubscribe +ping +client|setname +client|id +client|kill +info +role +select ";

  world& world_;
};

}  // namespace holdfast::test
