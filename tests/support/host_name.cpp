// SPDX-License-Identifier: BSL-1.0
#include "support/host_name.hpp"

#include <dlfcn.h>
#include <netdb.h>

#include <map>
#include <mutex>
#include <utility>

namespace holdfast::test {
namespace {

std::mutex guard;
std::map<std::string, std::vector<std::string>> table;

std::vector<std::string> addresses_of(const char* name) {
  const std::lock_guard lock(guard);
  const auto found = name ? table.find(name) : table.end();
  return found == table.end() ? std::vector<std::string>() : found->second;
}

}  // namespace

host_name::host_name(std::string name, std::vector<std::string> addresses) : name_(std::move(name)) {
  move_to(std::move(addresses));
}

host_name::~host_name() {
  const std::lock_guard lock(guard);
  table.erase(name_);
}

void host_name::move_to(std::vector<std::string> addresses) {
  const std::lock_guard lock(guard);
  table[name_] = std::move(addresses);
}

}  // namespace holdfast::test

// Stands before the C library's, which does all but to look into our table: its lists are chained in our order.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node, const char* service,
                                                                  const addrinfo* hints, addrinfo** result) {
  static const auto original = reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const auto addresses = holdfast::test::addresses_of(node);
  if (addresses.empty()) return original(node, service, hints, result);
  auto** end = result;
  for (const auto& address : addresses) {
    *end = nullptr;
    if (const int failed = original(address.c_str(), service, hints, end); failed != 0) {
      ::freeaddrinfo(*result);
      return failed;
    }
    while (*end) end = &(*end)->ai_next;
  }
  return 0;
}
