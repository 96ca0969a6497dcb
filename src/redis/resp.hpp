// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>

namespace holdfast::redis {

/// One reply of RESP2.
struct reply {
  enum class kind { nil, integer, status, string, error, array };
  kind type = kind::nil;
  long long integer = 0;        // integer only
  std::string text;             // status, string, error
  std::vector<reply> elements;  // array

  bool is_error() const noexcept { return type == kind::error; }
};

/// Appends commands: a count, and as many arguments, each by length, so that any byte is allowed in any of them.
class command_writer {
 public:
  /// `out` is complete only after flush().
  explicit command_writer(std::string& out) noexcept : out_(out) {}
  command_writer(const command_writer&) = delete;
  command_writer& operator=(const command_writer&) = delete;

  void begin(std::size_t arguments);
  void add(std::string_view argument);
  /// One argument, in parts.
  void add(std::span<const std::string_view> parts);
  void add(std::int64_t number);
  /// Arguments that are in RESP already.
  void add_encoded(std::string_view bytes);
  void flush();

 private:
  void put(std::string_view bytes);
  std::size_t room() const noexcept { return static_cast<std::size_t>(buffer_.data() + buffer_.size() - end_); }
  void need(std::size_t bytes) {
    if (bytes > room()) flush();
  }

  std::string& out_;
  std::array<char, 512> buffer_;  // one long append costs less than many short ones
  char* end_ = buffer_.data();
};

void append_command(std::string& out, std::span<const std::string_view> argv);
std::string make_command(std::initializer_list<std::string_view> argv);

/// The limits of a reader. A reply beyond them is a protocol error, found before memory is taken for it.
struct reader_limits {
  std::size_t elements = 1024;      // of one array
  std::size_t depth = 8;            // nesting of arrays
  std::size_t bytes = 1024 * 1024;  // of one reply
};

/// hiredis' parser: bytes in, replies out. Sans-I/O.
class HOLDFAST_EXPORT reader {
 public:
  explicit reader(reader_limits limits = {});
  ~reader();
  reader(reader&&) noexcept;
  reader& operator=(reader&&) noexcept;

  void feed(std::string_view bytes);
  /// The next whole reply, valid until the next call; null: none yet. After failed() it is always null.
  reply* next();
  bool failed() const noexcept;
  /// The cause, once failed(); it quotes at most a few bytes of the input, escaped.
  const std::string& failure() const noexcept;
  /// It failed() for lack of memory, whatever the bytes were. Neither feed() nor next() throws bad_alloc.
  bool out_of_memory() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::redis
