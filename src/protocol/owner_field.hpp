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
  /// The first 64 bits. 60 of them were chosen.
  std::uint64_t high() const noexcept;

 private:
  std::array<char, text_size> text_;
};

/// The owner of a hold as Redis knows it: a client, and the number of the hold there. Numbers grow, so the fields of a
/// client are in the order of their age. A field refers to its client's uuid, which lives in the client_state.
///
/// A hold of several permits has an amount: as many numbers in a row. The field has the first of them.
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
  owner_field(const uuid& client, std::uint64_t number, std::uint8_t amount = 1) noexcept
      : client_(&client), numbers_(number << 8 | amount) {}
  owner_field(uuid&& client, std::uint64_t number, std::uint8_t amount = 1) = delete;

  /// The text of the field. An empty field has an empty text.
  text to_text() const noexcept;
  /// Identifies the hold: the field, and "/n" for the hold after the n-th pass.
  text hold_id(std::uint32_t passes) const noexcept;
  std::string_view client() const noexcept { return client_->text(); }
  std::uint64_t number() const noexcept { return numbers_ >> 8; }
  bool empty() const noexcept { return number() == 0; }
  void clear() noexcept { numbers_ = 0; }
  std::uint8_t amount() const noexcept { return static_cast<std::uint8_t>(numbers_); }
  /// The name of the n-th permit in Redis: the first half of the uuid, then its number. Redisson's permits have 16
  /// random bytes.
  using permit_id = std::array<char, 16>;
  permit_id permit(std::uint8_t index) const noexcept;
  friend auto operator<=>(const owner_field&, const owner_field&) = default;

 private:
  const uuid* client_ = nullptr;

  // The first number and the amount are one word: each claim, each waiter and each release under way has a field.
  std::uint64_t numbers_ = 0;
};

/// A client has so many places in the queue of a fair mutex. Their text is that of an owner field. Their numbers are
/// larger than those of owners.
inline constexpr std::uint8_t most_places = 16;
inline constexpr std::uint64_t first_place = 1'000'000'000;
inline owner_field place_field(const uuid& client, std::uint8_t place) noexcept {
  return {client, first_place + place};
}

/// Makes owner fields, each for one hold.
class owner_fields {
 public:
  explicit owner_fields(const uuid& client) : client_(std::make_shared<const uuid>(client)) {}
  owner_field next(std::uint8_t amount = 1) noexcept {
    const auto number = last_ + 1;
    last_ += amount;
    return {*client_, number, amount};
  }
  /// The uuid that the fields refer to. The client_state, which every claim keeps, keeps it alive.
  const std::shared_ptr<const uuid>& client() const noexcept { return client_; }
  std::string_view client_uuid() const noexcept { return client_->text(); }

 private:
  std::shared_ptr<const uuid> client_;
  std::uint64_t last_ = 0;
};

}  // namespace holdfast::detail
