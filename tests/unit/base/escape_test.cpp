// SPDX-License-Identifier: BSL-1.0
#include "base/escape.hpp"

#include <string>

#include "support/catch.hpp"

using holdfast::detail::escaped;
using holdfast::detail::in_quotes;

TEST_CASE("printable ASCII stays as it is") {
  CHECK(escaped("").empty());
  CHECK(escaped("orders:{42} ~\\") == "orders:{42} ~\\");
}

TEST_CASE("every other byte is written in hexadecimal") {
  CHECK(escaped(std::string("\0\t\r\n\x1b[31m", 9)) == "\\x00\\x09\\x0d\\x0a\\x1b[31m");
  CHECK(escaped("\x7f\x80\xff") == "\\x7f\\x80\\xff");
  CHECK(escaped("é") == "\\xc3\\xa9");
}

TEST_CASE("of more than 64 bytes the first 64 are shown") {
  CHECK(escaped(std::string(64, 'a')) == std::string(64, 'a'));
  CHECK(escaped(std::string(65, 'a')) == std::string(64, 'a') + "…");
  CHECK(escaped(std::string(65'536, '\0')).size() == 64 * 4 + std::string("…").size());
}

TEST_CASE("no name ends its quotes, and none looks like another") {
  CHECK(in_quotes("") == "''");
  CHECK(in_quotes("orders:{42}") == "'orders:{42}'");
  CHECK(in_quotes("a'b\"c") == "'a\\'b\"c'");
  CHECK(in_quotes("a'b\"c", 64, '"') == "\"a'b\\\"c\"");
  CHECK(in_quotes("a\\x0a") == "'a\\\\x0a'");
  CHECK(in_quotes("a\n") == "'a\\x0a'");
  CHECK(in_quotes(std::string("\0\xff", 2)) == "'\\x00\\xff'");
  CHECK(in_quotes("abc", 2) == "'ab…'");
}
