// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/trace.hpp"

#include <cstdio>
#include <cstring>
#include <ostream>

#include "base/escape.hpp"

namespace holdfast::sim {

void trace::abbreviate(std::string long_name, std::string short_name) {
  if (out_) names_.insert_or_assign(std::move(long_name), std::move(short_name));
}

void trace::mix(std::string_view text) noexcept {
  constexpr std::uint64_t prime = 0x9e3779b97f4a7c15;
  hash_ = (hash_ ^ text.size()) * prime;
  while (!text.empty()) {
    std::uint64_t word = 0;
    const auto n = text.size() < sizeof word ? text.size() : sizeof word;
    std::memcpy(&word, text.data(), n);
    hash_ = (hash_ ^ word) * prime;
    hash_ ^= hash_ >> 29;
    text.remove_prefix(n);
  }
}

void trace::note(detail::time_point at, std::string_view actor, std::string_view act, std::string_view about) {
  const auto ns = at.time_since_epoch().count();
  mix({reinterpret_cast<const char*>(&ns), sizeof ns});
  mix(actor);
  mix(act);
  mix(about);
  if (!out_) return;
  char time[32];
  std::snprintf(time, sizeof time, "%12.3f", static_cast<double>(ns) / 1e6);
  *out_ << time << "  " << actor << std::string(actor.size() < 8 ? 8 - actor.size() : 0, ' ') << ' ' << act << ' '
        << shortened(about) << '\n';
}

std::string trace::shortened(std::string_view text) const {
  auto out = detail::escaped(text, 400);
  for (const auto& [from, to] : names_)
    for (auto at = out.find(from); at != out.npos; at = out.find(from, at + to.size()))
      out.replace(at, from.size(), to);
  return out;
}

}  // namespace holdfast::sim
