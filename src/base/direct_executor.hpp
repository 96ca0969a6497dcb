// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <optional>
#include <utility>

// Posting through an any_io_executor costs two allocations and a type erasure more than posting to the executor inside
// it. Most often that one is an io_context's own: post_to() and direct_strand find it.
namespace holdfast::detail {

/// It is an io_context's own: nothing else is bound to it.
inline bool is_direct(const boost::asio::any_io_executor& executor) noexcept {
  return executor.target<boost::asio::io_context::executor_type>() != nullptr;
}

template <class Run>
void post_to(const boost::asio::any_io_executor& to, Run run) {
  if (const auto* direct = to.target<boost::asio::io_context::executor_type>())
    boost::asio::post(*direct, std::move(run));
  else
    boost::asio::post(to, std::move(run));
}

/// A strand that is entered directly where it can be. A copy is the same strand.
class direct_strand {
 public:
  using any_strand = boost::asio::strand<boost::asio::any_io_executor>;

  explicit direct_strand(const boost::asio::any_io_executor& executor)
      : direct_(find(executor)), any_(direct_ ? any_strand(*direct_) : boost::asio::make_strand(executor)) {}
  direct_strand(const any_strand& entered_as_it_is) : any_(entered_as_it_is) {}

  const any_strand& any() const noexcept { return any_; }
  operator const any_strand&() const noexcept { return any_; }
  /// asio::dispatch()
  template <class Run>
  void dispatch(Run&& run) const {
    if (direct_)
      direct_->execute(std::forward<Run>(run));
    else
      boost::asio::dispatch(any_, std::forward<Run>(run));
  }

 private:
  using found_strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  static std::optional<found_strand> find(const boost::asio::any_io_executor& executor) {
    const auto* const found = executor.target<boost::asio::io_context::executor_type>();
    return found ? std::optional(found_strand(*found)) : std::nullopt;
  }

  std::optional<found_strand> direct_;
  any_strand any_;  // the same strand
};

}  // namespace holdfast::detail
