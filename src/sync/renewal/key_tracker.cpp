// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/key_tracker.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string_view>

#include "protocol/operands.hpp"
#include "sync/command/script_command.hpp"

namespace holdfast::detail {

/// EXISTS with the keys of one renewal. The server pushes their next changes.
class key_tracker::question final : public script_command {
 public:
  explicit question(host& of) noexcept : host_(of) {}

  renewals::shares parts;
  boost::container::small_vector<renewal, 1> keys;  // one for each

 private:
  // Without an answer the next renewal asks again.
  void on_answer(const outcome& answer) override {
    const bool counted = !answer.error && answer.reply.type == redis::reply::kind::integer;
    if (counted && answer.reply.integer < static_cast<std::int64_t>(parts.size())) host_.missing(parts);
  }

  host& host_;
};

void key_tracker::ask(node_id node, const renewals::shares& parts, std::size_t held) {
  const auto wanted = [](const share& part) {
    return guarded(part.of) && !part.denied() && part.of.keys->of.pushed.holds;
  };
  const auto first = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return wanted(*part); });
  if (first == parts.end() || held > most_tracked) return;
  const std::string_view key = (*first)->of.keys->lock;
  pushes_.ask(*env_.pushes, key);
  auto& server = env_.servers.primary(node);
  // A server that begins later puts its keys in question.
  if (!server.pushes(key)) return;
  const auto asked = make_pooled<question>(env_.blocks, host_);
  asked->parts.reserve(parts.size());
  asked->keys.reserve(parts.size());
  for (const auto& part : parts) {
    if (!wanted(*part)) continue;
    asked->parts.push_back(part);
    asked->keys.push_back({part->of.keys.get(), part->of.field, {}});
  }
  asked->send(server, operands::count_keys({asked->keys.data(), asked->keys.size()}),
              {.timeout = env_.settings.command_timeout,
               .rank = urgency::obligation,
               .track = true,
               .unhurried = true,
               .divisible = asked->keys.size() > 1});
}

}  // namespace holdfast::detail
