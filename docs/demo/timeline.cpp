// SPDX-License-Identifier: BSL-1.0
#include "timeline.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace holdfast::demo {
namespace {

constexpr std::string_view bold = "1", dim = "2", red = "31", green = "32";
constexpr std::array<std::string_view, 5> actor_colours{"33", "34", "35", "36", "94"};

std::string_view colour_of(std::string_view actor) {
  if (actor == "redis") return dim;
  if (actor == "demo") return bold;
  const auto process = actor.substr(0, actor.find('.'));  // tasks as their process
  return actor_colours[static_cast<unsigned char>(process.empty() ? 0 : process.back()) % actor_colours.size()];
}

bool colours_wanted() {
  const auto is_set = [](const char* text) { return text != nullptr && *text != 0; };
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && !is_set(std::getenv("NO_COLOR")) && is_set(terminal) &&
         std::string_view(terminal) != "dumb";
}

std::string format(const char* pattern, auto... values) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), pattern, values...);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  if (result.size() < width) result.append(width - result.size(), ' ');
  return result;
}

}  // namespace

timeline::timeline() : colours_(colours_wanted()) {}

std::string timeline::stamp(steady_clock::time_point at) const { return format("%.3f", since_start(at).count()); }

std::string timeline::painted(std::string_view colour, std::string_view text) const {
  if (!colours_) return std::string(text);
  return "\x1b[" + std::string(colour) + "m" + std::string(text) + "\x1b[0m";
}

void timeline::print(const std::string& text) {
  if (!read_) return;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return;
  read_ = false;
  ::raise(SIGTERM);
}

void timeline::heading() { print(painted(dim, "  time/s  who    TTL/ms  what") + "\n"); }

void timeline::scene(std::string_view title) { print("\n" + painted(bold, title) + "\n"); }

void timeline::line(steady_clock::time_point at, std::string_view actor, std::optional<milliseconds> ttl,
                    std::string_view text) {
  const auto left = ttl ? format("%6lld", static_cast<long long>(ttl->count())) : std::string(6, ' ');
  print(painted(dim, format("%8s", stamp(at).c_str())) + "  " + painted(colour_of(actor), padded(actor, 6)) + " " +
        left + "  " + std::string(text) + "\n");
}

void timeline::verdict(bool ok, std::string_view text) {
  print("          " + (ok ? painted(green, "ok") : painted(red, "FAILED")) + ": " + std::string(text) + "\n");
}

void timeline::problem(std::string_view expected, std::string_view seen) {
  print("            expected " + std::string(expected) + "\n            saw      " + painted(red, seen) + "\n");
}

void timeline::note(std::string_view text) { print(std::string(text) + "\n"); }

std::string in_ms(steady_clock::duration time) {
  const auto value = std::chrono::duration<double, std::milli>(time).count();
  return format(value < 10 && value > -10 ? "%.2f ms" : "%.0f ms", value);
}

std::string counted(std::size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : noun.ends_with("s") ? "es" : "s");
}

}  // namespace holdfast::demo
