// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

namespace json = boost::json;

/// Bytes of others, for people: printable ASCII, a backslash twice, everything else as \xNN. No name can move a cursor
/// or begin a line, and no two names look alike.
std::string shown(std::string_view bytes);
/// The same where the bytes are UTF-8 already and are to be exact: a JSON string. Other bytes: `<key>_hex` has all of
/// them, and `key` has them as shown().
void put_bytes(json::object& into, std::string_view key, std::string_view bytes);
/// The value, or null.
template <class T>
void put_if(json::object& into, std::string_view key, const std::optional<T>& value) {
  if (value)
    into[key] = *value;
  else
    into[key] = nullptr;
}
/// "28.4 s", "3 min 20 s", "none" for less than 0.
std::string duration_text(long long milliseconds);

enum class colour { none, good, doubtful, bad, faint };
/// Coloured if standard output is a terminal and NO_COLOR is not set.
std::string painted(colour colour, std::string_view text);

/// One line to standard output, at once.
void print(const std::string& line);
void print(const json::object& line);
/// One line to standard error, after "holdfast: ".
void complain(const std::string& line);
/// False: something of the output could not be written.
bool output_is_complete();

}  // namespace holdfast::cli
