// SPDX-License-Identifier: BSL-1.0
#include "base/block_pool.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/skip.hpp"

namespace holdfast::test {
namespace {

using detail::block_pool;
using detail::block_pool_ptr;
using detail::make_pooled;

constexpr std::size_t size = 200;

}  // namespace

TEST_CASE("a block that was given back is the next one of its size") {
  if (address_sanitized) skip("under AddressSanitizer nothing is kept");
  const block_pool_ptr pool(new block_pool);
  auto* const first = pool->take(size);
  pool->give_back(first, size);
  auto* const other_size = pool->take(size + 100);
  CHECK(other_size != first);
  CHECK(pool->take(size) == first);
  auto* const second = pool->take(size);
  CHECK(second != first);
  pool->give_back(first, size);
  pool->give_back(second, size);
  pool->give_back(other_size, size + 100);
}

TEST_CASE("a pool leaves large blocks to the heap") {
  const block_pool_ptr pool(new block_pool);
  auto* const large = pool->take(100'000);
  pool->give_back(large, 100'000);
}

TEST_CASE("a pool that was closed frees what comes back, from whichever thread") {
  const block_pool_ptr pool(new block_pool);
  std::vector<std::shared_ptr<int>> left;
  for (int i = 0; i < 100; ++i) left.push_back(make_pooled<int>(pool, i));
  std::thread other([half = std::vector(left.begin(), left.begin() + 50)]() mutable { half.clear(); });
  left.erase(left.begin(), left.begin() + 50);
  pool->close();
  left.clear();
  other.join();
}

TEST_CASE("whoever has a block keeps its pool alive") {
  auto last = make_pooled<int>(block_pool_ptr(new block_pool), 7);
  CHECK(*last == 7);
  last.reset();
}

TEST_CASE("many threads take blocks in turn and give them back at once") {
  const block_pool_ptr pool(new block_pool);
  std::atomic<int> shared = 0;
  std::mutex turn;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, &shared, &turn, t] {
      for (int i = 0; i < 5'000; ++i) {
        auto* const block = [&] {
          const std::lock_guard alone(turn);
          return static_cast<int*>(pool->take(size));
        }();
        *block = t;
        shared += *block != t;
        pool->give_back(block, size);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(shared == 0);
}

}  // namespace holdfast::test
