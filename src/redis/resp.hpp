// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

/// One reply, as RESP2 knows them.
struct reply {
  enum class kind { nil, integer, status, string, error, array };
  kind type = kind::nil;
  long long integer = 0;        // integer only
  std::string text;             // status, string, error
  std::vector<reply> elements;  // array

  bool is_error() const noexcept { return type == kind::error; }
};

// A command is its head and as many arguments, each by length: any byte is allowed in any argument.
void append_head(std::string& out, std::size_t arguments);
void append_argument(std::string& out, std::string_view argument);
void append_command(std::string& out, std::span<const std::string_view> argv);
std::string make_command(std::initializer_list<std::string_view> argv);

/// What a reader accepts; a reply beyond it is a protocol error, found before memory is taken for it.
struct reader_limits {
  std::size_t elements = 1024;      // of one array
  std::size_t depth = 8;            // nesting of arrays
  std::size_t bytes = 1024 * 1024;  // of one reply
};

/// hiredis' parser: bytes in, replies out. Sans-I/O.
class reader {
 public:
  explicit reader(reader_limits limits = {});
  ~reader();
  reader(reader&&) noexcept;
  reader& operator=(reader&&) noexcept;

  void feed(std::string_view bytes);
  /// The next whole reply, or nothing yet. After failed() it gives nothing any more.
  std::optional<reply> next();
  bool failed() const noexcept;
  /// Why, once failed(); never quotes more than a few bytes of the input, escaped.
  const std::string& failure() const noexcept;
  /// It failed() for want of memory, whatever the bytes were. Neither feed() nor next() throws bad_alloc.
  bool out_of_memory() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::redis
