// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <string>

#include "protocol/call.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// The sender of a script: sends it by digest, and once by text where the server does not know it. One copy at a time.
class script_command : public redis::command, public std::enable_shared_from_this<script_command> {
 public:
  /// What `what` refers to must live until on_answer(), or until withdraw() has returned true.
  void send(topology& to, const call& what, const delivery& how);
  /// The sender wants the answer no more. True: the script has not run and never will, and on_answer() is not called.
  /// False: on_answer() is still to come, or nothing is under way.
  bool withdraw();

 private:
  virtual void on_answer(const outcome& o) = 0;

  void append_to(std::string& out) const final { call_.append_to(out, by_text_); }
  void answered(const outcome& o) final;
  void execute();

  topology* to_ = nullptr;
  call call_;
  delivery how_{};
  redis::ticket asked_ = 0;
  bool unanswered_ = false;
  bool by_text_ = false;
  bool unwanted_ = false;
};

}  // namespace holdfast::detail
