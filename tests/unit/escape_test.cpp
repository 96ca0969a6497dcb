// SPDX-License-Identifier: BSL-1.0
#include "base/escape.hpp"

#include <string>

#include "support/catch.hpp"

using holdfast::detail::escaped;

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
