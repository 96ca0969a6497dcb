// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list_hook.hpp>
#include <memory>
#include <utility>

#include "sync/line/acquisition.hpp"

namespace holdfast::detail {

class multi_key_request;

/// The names of this client, as one who asks for several of them sees them.
class multi_key_host {
 public:
  /// Waits for one of them, or re-enters it. Null: it was answered at once.
  virtual std::shared_ptr<acquisition> lock(const shared_keys& keys, const lock_request& request,
                                            lock_handler&& done) = 0;
  /// Nobody of this client has it or waits for it.
  virtual bool untouched(const lock_keys& keys) = 0;
  /// This owner has a hold of it; also a lost one, whose leases are still there.
  virtual bool holds(const lock_keys& keys, owner_id owner) = 0;
  virtual owner_field new_field() = 0;
  /// Redis has granted one, by a command that was sent for it here.
  virtual std::shared_ptr<lease_record> granted(const shared_keys& keys, const lock_request& request,
                                                const granted_field& grant) = 0;
  /// As line_host::give_back().
  virtual void give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl,
                         function<void()> tried) = 0;
  /// It has answered its caller: it needs not be told of drain and end any more.
  virtual void forget(multi_key_request& answered) = 0;

 protected:
  ~multi_key_host() = default;
};

/// One caller who wants several locks. The registry lists it until it is answered, and tells it when the client drains,
/// closes or ends.
class multi_key_request : public cancellable {
 public:
  explicit multi_key_request(lock_request wanted) : request(std::move(wanted)) {}

  const lock_request request;

  /// Once.
  virtual void begin() = 0;
  /// It was not answered yet.
  virtual bool open() const noexcept = 0;
  /// Answers the caller with this error; what may be granted is given back.
  virtual void fail(error_code error, const char* detail) = 0;
  /// The engine ends, and nobody is answered.
  virtual void forget_caller() = 0;

  /// The registry's.
  struct listing {
    boost::intrusive::list_member_hook<> hook;
    std::shared_ptr<multi_key_request> kept;
  } listed;
};

}  // namespace holdfast::detail
