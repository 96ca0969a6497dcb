// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/assert.hpp"
#include "base/if_memory.hpp"

namespace holdfast::redis {

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
