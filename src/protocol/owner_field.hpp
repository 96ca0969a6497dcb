// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace holdfast::detail {

/// A UUID of 122 chosen bits. Its version is 8, which tells our fields from Redisson's (version 4). It is kept as text,
/// because each command contains it.
class uuid {
 public:
  static constexpr std::size_t text_size = 36;

  uuid(std::uint64_t high, std::uint64_t low) noexcept;
  std::string_view text() const noexcept { return {text_.data(), text_.size()}; }

 private:
  std::array<char, text_size> text_;
};

/// The owner of a hold as Redis knows it: a client, and the number of the hold there. Numbers grow, so the fields of a
/// client are in the order of their age. A field refers to its client's uuid, which lives in the client_state.
///
/// Decision: an owner field is never used again. Redisson's field is client and thread, the same for each hold of the
/// thread. Then a delayed release of one hold can end the next one. An unlock latch is needed as well, to tell a
/// repeated unlock from a wrong one. A number for each hold needs neither.
///
/// Decision: an owner field leads to a process. The uuid is drawn before the client connects, and is part of the
/// connections' names, with process id and host name. So an operator finds the process of a stuck lock with CLIENT
/// LIST. The field itself stays in Redisson's form.
class owner_field {
 public:
  /// "<client uuid>:<decimal>"
  class text {
   public:
    operator std::string_view() const noexcept { return {bytes_.data(), size_}; }

   private:
    friend class owner_field;
    std::array<char, uuid::text_size + 1 + 20 + 1 + 10> bytes_;
    std::size_t size_ = 0;
  };

  owner_field() = default;
  owner_field(const uuid& client, std::uint64_t number) noexcept : client_(&client), number_(number) {}
  owner_field(uuid&& client, std::uint64_t number) = delete;

  /// The text of the field. An empty field has an empty text.
  text to_text() const noexcept;
  /// Identifies the hold: the field, and "/n" for the hold after the n-th pass.
  text hold_id(std::uint32_t passes) const noexcept;
  bool empty() const noexcept { return number_ == 0; }
  void clear() noexcept { number_ = 0; }
  friend auto operator<=>(const owner_field&, const owner_field&) = default;

 private:
  const uuid* client_ = nullptr;
  std::uint64_t number_ = 0;
};

/// Makes owner fields, each for one hold.
class owner_fields {
 public:
  explicit owner_fields(const uuid& client) : client_(std::make_shared<const uuid>(client)) {}
  owner_field next() noexcept { return {*client_, ++last_}; }
  /// The uuid that the fields refer to. The client_state, which every claim keeps, keeps it alive.
  const std::shared_ptr<const uuid>& client() const noexcept { return client_; }
  std::string_view client_uuid() const noexcept { return client_->text(); }

 private:
  std::shared_ptr<const uuid> client_;
  std::uint64_t last_ = 0;
};

}  // namespace holdfast::detail
