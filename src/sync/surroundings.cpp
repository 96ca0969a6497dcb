// SPDX-License-Identifier: BSL-1.0
#include "sync/surroundings.hpp"

#include <memory>

#include "base/escape.hpp"

namespace holdfast::detail {

void surroundings::run(script_call call, time_point deadline, topology::handler done, function<bool()> wanted) const {
  struct attempt {
    topology& to;
    script_call call;
    time_point deadline;
    topology::handler done;
    function<bool()> wanted;
  };
  const auto a =
      std::make_shared<attempt>(attempt{servers, std::move(call), deadline, std::move(done), std::move(wanted)});
  servers.execute(a->call.key(), a->call.by_digest(), deadline, [a](outcome o) {
    if (!o.error && is_unknown_script(o.reply) && (!a->wanted || a->wanted())) {
      a->to.execute(a->call.key(), a->call.by_text(), a->deadline, std::move(a->done));
    } else {
      a->done(std::move(o));
    }
  });
}

std::string about(std::string_view name, std::string_view cause) {
  std::string text = "lock '" + escaped(name) + "'";
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

}  // namespace holdfast::detail
