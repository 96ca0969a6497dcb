// SPDX-License-Identifier: BSL-1.0
#include "sync/surroundings.hpp"

#include "base/escape.hpp"

namespace holdfast::detail {

void surroundings::run(script_call call, time_point deadline, topology::handler done, std::function<bool()> wanted) const {
  auto command = call.by_digest();
  const std::string key(call.key());
  auto answered = [&to = servers, call = std::move(call), deadline, done = std::move(done), wanted = std::move(wanted)](outcome o) {
    if (!o.error && is_unknown_script(o.reply) && (!wanted || wanted())) {
      to.execute(call.key(), call.by_text(), deadline, done);
    } else {
      done(std::move(o));
    }
  };
  servers.execute(key, std::move(command), deadline, std::move(answered));
}

std::string about(std::string_view name, std::string_view cause) {
  std::string text = "lock '" + escaped(name) + "'";
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

}  // namespace holdfast::detail
