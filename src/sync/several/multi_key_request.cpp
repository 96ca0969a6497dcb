// SPDX-License-Identifier: BSL-1.0
#include "sync/several/multi_key_request.hpp"

namespace holdfast::detail {

std::string about_several(std::string_view words, std::size_t locks, std::string_view cause) {
  auto text = std::string(words) + ' ' + std::to_string(locks) + " locks";
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

void multi_key_request::report_end(const environment& env, hold_event&& end, time_point since,
                                   const std::optional<failure>& failed, std::string_view all) const {
  end.content.waited = env.now() - since;
  end.content.detail = all;
  if (failed) {
    end.content.reason = failed->code;
    if (!failed->detail.empty()) end.content.detail = failed->detail;
  }
  end.content.owner = request.owner;
  end.content.ttl = request.asked.ttl;
  env.report(std::move(end));
}

}  // namespace holdfast::detail
