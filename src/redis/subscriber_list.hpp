// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "redis/outcome.hpp"

namespace holdfast::redis {

/// One subscription of a channel. Its end calls Hub::leave(), if it has joined and the hub exists still.
template <class Hub>
struct channel_member {
  channel_member(std::weak_ptr<Hub> home, std::string_view name, subscriber& subscriber)
      : hub(std::move(home)), channel(name), listener(subscriber) {}
  channel_member(const channel_member&) = delete;
  channel_member& operator=(const channel_member&) = delete;
  ~channel_member() {
    if (!joined) return;
    if (const auto home = hub.lock()) home->leave(*this);
  }

  const std::weak_ptr<Hub> hub;
  const std::string channel;
  subscriber& listener;
  bool joined = false;
  bool notified = false;  // that it is subscribed: messages may come
};

/// The subscribers of one channel, by reference. They may come and go during a notification: a leaving one leaves a
/// gap, and a new one is not part of it.
template <class Member>
class subscriber_list {
 public:
  bool empty() const noexcept { return size_ == 0; }
  void join(Member& subscriber) {
    members_.push_back(&subscriber);
    ++size_;
  }
  void leave(Member& subscriber) {
    const auto place = std::find(members_.begin(), members_.end(), &subscriber);
    HOLDFAST_ASSERT(place != members_.end() && size_ > 0);
    if (telling_ != 0)
      *place = nullptr;
    else
      members_.erase(place);
    --size_;
  }

  /// Notifies each member while `go_on` is true, even if one of them finds no memory. A member may end the owner's
  /// reference to this object meanwhile, but not the object.
  template <class What, class GoOn>
  void tell(What action, GoOn go_on) {
    ++telling_;
    const auto count = members_.size();
    detail::each_step step;
    for (std::size_t i = 0; i < count && go_on(); ++i)
      if (auto* subscriber = members_[i]) step([&] { action(*subscriber); });
    if (--telling_ == 0) std::erase(members_, nullptr);
    HOLDFAST_ASSERT(telling_ != 0 || size_ == members_.size());
    step.rethrow();
  }

 private:
  std::vector<Member*> members_;
  std::size_t size_ = 0;
  int telling_ = 0;
};

}  // namespace holdfast::redis
