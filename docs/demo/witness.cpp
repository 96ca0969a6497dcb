// SPDX-License-Identifier: BSL-1.0
#include "witness.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include "support/fd.hpp"

namespace holdfast::demo {
namespace {

long long ticks(steady_clock::time_point at) { return at.time_since_epoch().count(); }
steady_clock::time_point instant(long long ticks) { return steady_clock::time_point(steady_clock::duration(ticks)); }

}  // namespace

std::vector<witness::entry> witness::read() const {
  std::vector<entry> all;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    entry one;
    long long entered = 0, left = 0;
    words >> one.number >> one.who >> entered >> left;
    one.entered = instant(entered);
    one.left = instant(left);
    all.push_back(std::move(one));
  }
  return all;
}

long long witness::last_number() const {
  std::ifstream file(path_);
  std::string line, last = "0";
  while (std::getline(file, line)) last = line;
  return std::stoll(last);
}

void witness::append(long long number, std::string_view who, steady_clock::time_point entered) const {
  const test::unique_fd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  const auto line = std::to_string(number) + ' ' + std::string(who) + ' ' + std::to_string(ticks(entered)) + ' ' +
                    std::to_string(ticks(steady_clock::now())) + '\n';
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::system_error(errno, std::generic_category(), path_);
}

}  // namespace holdfast::demo
