// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list_hook.hpp>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "sync/command/environment.hpp"
#include "sync/line/acquisition.hpp"

namespace holdfast::detail {

class multi_key_request;

/// "any of 3 locks: cause". `words`: "any of" or "all of".
std::string about_several(std::string_view words, std::size_t locks, std::string_view cause = {});

/// The names of this client, as a call for several of them sees them.
class multi_key_host {
 public:
  /// Waits for one name, or re-enters its hold. Null: the call was answered at once.
  virtual std::shared_ptr<acquisition> lock(const shared_keys& keys, const lock_request& request,
                                            lock_handler&& done) = 0;
  /// This client neither holds the name nor waits for it.
  virtual bool untouched(const lock_keys& keys) = 0;
  /// A call of this owner for the name is nested in a hold. A lost hold counts while a lease of it exists.
  virtual bool nests(const lock_keys& keys, owner_id owner) = 0;
  virtual owner_field new_field() = 0;
  /// Redis has granted one name, by a command of the call itself.
  virtual std::shared_ptr<lease_record> granted(const shared_keys& keys, const lock_request& request,
                                                const owner_field& field, const attempt& grant, time_point now) = 0;
  /// As name::give_back().
  virtual void give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl,
                         function<void()> tried) = 0;
  /// The call has answered its caller. It is not notified of a drain or of the end any more.
  virtual void forget(multi_key_request& answered) = 0;

 protected:
  ~multi_key_host() = default;
};

/// One call that wants several locks. The registry lists it until its answer, and ends it when the client drains,
/// closes or ends.
class multi_key_request : public cancellable {
 public:
  explicit multi_key_request(lock_request wanted) : request(std::move(wanted)) {}

  const lock_request request;

  /// Called once by the registry.
  virtual void begin() = 0;
  /// The caller was not answered yet.
  virtual bool open() const noexcept = 0;
  /// Answers the caller with this error. Possible grants are given back.
  virtual void fail(error_code error, const char* detail) = 0;
  /// The engine ends. The caller gets no answer.
  virtual void forget_caller() = 0;

  /// Used by the registry alone.
  struct listing {
    boost::intrusive::list_member_hook<> hook;
    std::shared_ptr<multi_key_request> kept;
  } listed;

 protected:
  /// Reports the end of the call. `end`: the event's kind and lock. `all` stands for the text of the failure where
  /// there is none.
  void report_end(const environment& env, hold_event&& end, time_point since, const std::optional<failure>& failed,
                  std::string_view all) const;
  /// Runs a step that may answer the caller. The answer takes the call out of the list, so it is kept until the end.
  template <class Act>
  void or_without_memory(Act act) {
    const auto keep = listed.kept;
    try {
      act();
    } catch (const std::bad_alloc&) {
      on_no_memory();
    }
  }

 private:
  /// A step found no memory. The exception is being handled, and may be rethrown.
  virtual void on_no_memory() = 0;
};

}  // namespace holdfast::detail
