// SPDX-License-Identifier: BSL-1.0
#include "chaos/guarded_resource.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace holdfast::chaos {
namespace {

constexpr const char* writes_key = "writes";

}  // namespace

guarded_resource::guarded_resource(const std::string& socket_path) : server_(socket_path) {
  std::ifstream file(FENCED_TASK_LUA);
  fenced_task_.assign(std::istreambuf_iterator<char>(file), {});
  if (fenced_task_.empty()) throw std::runtime_error("cannot read " FENCED_TASK_LUA);
}

long long guarded_resource::read_counter(const std::string& lock) {
  const auto value = server_("GET", "counter:" + lock);
  return value.is_nil() ? 0 : value.integer();
}

void guarded_resource::write_counter(const std::string& lock, long long value) {
  server_("SET", "counter:" + lock, value);
}

guarded_resource::verdict guarded_resource::write_register(const std::string& lock, std::uint64_t token) {
  const auto value = "register:" + lock;
  const auto said = server_("EVAL", fenced_task_, 3, "fence:" + lock, writes_key, value, token,  //
                            2, "INCR", writes_key,                                               //
                            3, "SET", value, token);
  const bool accepted = said.array().at(0) == 1;
  return {accepted, accepted ? said.array().at(1).integer() : 0};
}

void guarded_resource::count_read(const std::string& lock) { server_("INCR", "reads:" + lock); }

long long guarded_resource::counted() {
  long long all = 0;
  for (const auto* counters : {"counter:*", "reads:*"})
    for (const auto& counter : server_("KEYS", counters).strings()) all += server_("GET", counter).integer();
  return all;
}

}  // namespace holdfast::chaos
