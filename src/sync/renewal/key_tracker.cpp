// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/key_tracker.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string_view>

#include "base/if_memory.hpp"
#include "protocol/operands.hpp"
#include "sync/command/script_command.hpp"

namespace holdfast::detail {

namespace {

bool is_tracked(const share& part) { return guarded(part.of) && !part.denied() && part.of.keys->of.pushed.holds; }

}  // namespace

/// EXISTS with some keys. The server pushes their next changes.
class key_tracker::question final : public script_command {
 public:
  question(key_tracker& by, node_id at, bool of_backlog) noexcept : node(at), of_backlog(of_backlog), by_(by) {}

  const node_id node;
  const bool of_backlog;
  renewals::shares parts;
  boost::container::small_vector<renewal, 1> keys;  // one for each

 private:
  void on_answer(const outcome& answer) override { by_.answered(*this, answer); }

  key_tracker& by_;
};

void key_tracker::ask(node_id node, const renewals::shares& parts, std::size_t held) {
  if (held > most_tracked) return;
  renewals::shares wanted;
  for (const auto& part : parts)
    if (is_tracked(*part) && !part->sent_by_push) wanted.push_back(part);
  if (wanted.empty()) return;
  pushes_.ask(*env_.pushes, wanted.front()->of.keys->lock);
  send(node, wanted, false);
}

// Shares that still wait are replaced: each share is asked for once.
void key_tracker::ask_all(node_id node, grouped_shares parts, std::size_t held) {
  auto& all = backlogs_[node];
  all.forget();
  if (held <= most_tracked && !parts.empty()) {
    pushes_.ask(*env_.pushes, parts.front().second->of.keys->lock);
    all.parts = std::move(parts);
  }
  go_on(node);
}

void key_tracker::go_on(node_id node) {
  auto& all = backlogs_.at(node);
  while (all.under_way < most_under_way && all.next < all.parts.size()) {
    bool sent = false;
    if_memory([&] {
      const auto parts = all.take();
      sent = !parts.empty() && send(node, parts, true);
    });
    // A server that does not push any more will put its keys in question when it begins again.
    if (!sent) all.forget();
    all.under_way += sent;
  }
  if (all.under_way == 0) backlogs_.erase(node);
}

renewals::shares key_tracker::backlog::take() {
  renewals::shares taken;
  for (key_group group{}; next < parts.size() && taken.size() < renewals::batch_size; ++next) {
    const auto& [of, part] = parts[next];
    if (!is_tracked(*part)) continue;
    if (!taken.empty() && of != group) break;
    group = of;
    taken.push_back(part);
  }
  return taken;
}

void key_tracker::end() noexcept {
  pushes_.end();
  for (auto& [node, all] : backlogs_) all.forget();
}

// False: the server does not push.
bool key_tracker::send(node_id node, const renewals::shares& parts, bool of_backlog) {
  const std::string_view key = parts.front()->of.keys->lock;
  auto& server = env_.servers.primary(node);
  // A server that begins later puts its keys in question.
  if (!server.pushes(key)) return false;
  const auto asked = make_pooled<question>(env_.blocks, *this, node, of_backlog);
  asked->parts = parts;
  asked->keys.reserve(parts.size());
  for (const auto& part : parts) asked->keys.push_back({part->of.keys.get(), part->of.field, {}});
  asked->script_command::send(server, operands::count_keys({asked->keys.data(), asked->keys.size()}),
                              {.timeout = env_.settings.command_timeout,
                               .rank = urgency::obligation,
                               .track = true,
                               .unhurried = true,
                               .divisible = asked->keys.size() > 1});
  return true;
}

// Without an answer the next renewal asks again.
void key_tracker::answered(const question& asked, const outcome& answer) {
  const bool counted = !answer.error && answer.reply.type == redis::reply::kind::integer;
  if (asked.of_backlog) {
    if (const auto all = backlogs_.find(asked.node); all != backlogs_.end()) {
      --all->second.under_way;
      if (answer.error) all->second.forget();
      go_on(asked.node);
    }
  }
  if (counted && answer.reply.integer < static_cast<std::int64_t>(asked.parts.size())) host_.missing(asked.parts);
}

}  // namespace holdfast::detail
