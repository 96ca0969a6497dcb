// SPDX-License-Identifier: BSL-1.0
// holdfast_sim [--seeds N] [--first N] [--every N] [--threads N] [--violations N]
//     lives N seeds, or until so many of them were violations, and counts what was met; fails if anything never was, or
//     is not listed. Every 20th seed has five servers: --first 20 --every 20 lives these; --first 10 --every 20 those
//     with sentinels, and --first 5 --every 20 those with a cluster.
// holdfast_sim SEED
//     lives one seed and prints what happens
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include "sim/world.hpp"

namespace {

using holdfast::sim::coverage;
using holdfast::sim::verdict;

struct options {
  std::uint64_t first = 1, seeds = 10'000, every = 1, violations = std::numeric_limits<std::uint64_t>::max();
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::optional<std::uint64_t> replay;
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  return failed == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

std::optional<options> parse(const std::vector<std::string_view>& words) {
  options o;
  if (words.size() == 1) return (o.replay = number(words[0])) ? std::optional(o) : std::nullopt;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const auto n = number(words[i + 1]);
    if (!n) return std::nullopt;
    if (words[i] == "--seeds")
      o.seeds = *n;
    else if (words[i] == "--first")
      o.first = *n;
    else if (words[i] == "--every")
      o.every = std::max<std::uint64_t>(1, *n);
    else if (words[i] == "--violations")
      o.violations = *n;
    else if (words[i] == "--threads")
      o.threads = static_cast<unsigned>(std::max<std::uint64_t>(1, *n));
    else
      return std::nullopt;
  }
  return words.size() % 2 == 0 ? std::optional(o) : std::nullopt;
}

thread_local std::uint64_t lived = 0;  // the seed that this thread lives

// A failed assertion calls abort(), which raises the signal in the thread that lives the seed.
void tell_seed(int) {
  char text[64] = "seed ";
  auto* end = std::to_chars(text + std::strlen(text), text + sizeof text, lived).ptr;
  constexpr std::string_view rest = ": VIOLATION the process ended itself\n";
  end = std::copy(rest.begin(), rest.end(), end);
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text, static_cast<std::size_t>(end - text));
}

int replay(std::uint64_t seed) {
  lived = seed;
  std::cout << std::unitbuf;  // an assertion that fails loses no line
  coverage met;
  const auto v = holdfast::sim::run_seed(seed, met, &std::cout);
  std::cout << "seed " << seed << ": " << v.clients << " clients, " << v.acts << " acts, " << v.faults
            << " faults, hash " << std::hex << v.hash << std::dec
            << (v.violation.empty() ? ", no violation" : "\nVIOLATION ") << v.violation << '\n';
  return v.violation.empty() ? 0 : 1;
}

int run(const options& o, std::string_view program) {
  constexpr int shown = 20;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  coverage met;
  std::uint64_t acts = 0, faults = 0, violations = 0;
  const auto live = [&] {
    coverage mine;
    std::uint64_t my_acts = 0, my_faults = 0;
    for (auto n = next++; n < o.seeds; n = next++) {
      const auto seed = lived = o.first + n * o.every;
      const auto v = holdfast::sim::run_seed(seed, mine);
      my_acts += v.acts;
      my_faults += v.faults;
      if (v.violation.empty()) continue;
      const std::lock_guard lock(mutex);
      if (++violations <= shown)
        std::cout << "seed " << seed << ": VIOLATION " << v.violation << "\n  replay: " << program << ' ' << seed
                  << std::endl;
      if (violations >= o.violations) next = o.seeds;
    }
    const std::lock_guard lock(mutex);
    met.add(mine);
    acts += my_acts;
    faults += my_faults;
  };
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < o.threads; ++i) threads.emplace_back(live);
  for (auto& t : threads) t.join();
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  met.print(std::cout);
  std::cout << o.seeds << " seeds, " << acts << " acts, " << faults << " faults, " << violations << " violations in "
            << took << " s\n";
  const auto missing = met.missing();
  const auto unlisted = met.unlisted();
  if (!missing.empty()) std::cout << "never met: " << missing << '\n';
  if (!unlisted.empty()) std::cout << "unlisted: " << unlisted << '\n';
  return violations == 0 && missing.empty() && unlisted.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto o = parse({argv + 1, argv + argc});
  if (!o) {
    std::cerr << "usage: " << argv[0] << " [--seeds N] [--first N] [--every N] [--threads N] [--violations N] | SEED\n";
    return 64;
  }
  std::signal(SIGABRT, tell_seed);
  return o->replay ? replay(*o->replay) : run(*o, argv[0]);
}
