// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list_hook.hpp>
#include <memory>
#include <utility>

#include "sync/line/acquisition.hpp"

namespace holdfast::detail {

/// One caller who wants several locks. The registry lists it until it is answered, and tells it when the client drains,
/// closes or ends.
class asker : public cancellable {
 public:
  explicit asker(lock_request r) : request(std::move(r)) {}

  const lock_request request;

  /// It was not answered yet.
  virtual bool open() const noexcept = 0;
  /// Answers the caller with this error; what may be granted is given back.
  virtual void fail(error_code error, const char* detail) = 0;
  /// The engine ends, and nobody is answered.
  virtual void forget_caller() = 0;

  /// The registry's.
  struct listing {
    boost::intrusive::list_member_hook<> hook;
    std::shared_ptr<asker> kept;
  } listed;
};

}  // namespace holdfast::detail
