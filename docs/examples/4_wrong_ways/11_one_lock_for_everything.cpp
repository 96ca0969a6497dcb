// SPDX-License-Identifier: BSL-1.0
// One lock guards all orders. Two orders have nothing in common, and yet one waits for the other.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  process a(url), b(url);
  std::cout << std::boolalpha;

  {
    auto ships = a.run(a.redis.simple_mutex("orders").lock());     // order 1
    auto also = b.run(b.redis.simple_mutex("orders").try_lock());  // order 2
    std::cout << "wrong: A works on order 1: " << ships.held() << ", B on order 2: " << also.has_value() << '\n';
    a.run(ships.unlock());
  }

  auto ships = a.run(a.redis.simple_mutex("orders:1").lock());
  auto also = b.run(b.redis.simple_mutex("orders:2").try_lock());
  auto same = b.run(b.redis.simple_mutex("orders:1").try_lock());
  std::cout << "right: A works on order 1: " << ships.held() << ", B on order 2: " << also.has_value();
  std::cout << ", and on order 1 too: " << same.has_value() << '\n';
}

// Output:
//   wrong: A works on order 1: true, B on order 2: false
//   right: A works on order 1: true, B on order 2: true, and on order 1 too: false
