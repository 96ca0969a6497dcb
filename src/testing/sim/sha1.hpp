// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>

namespace holdfast::sim {

/// SHA-1 in lower-case hexadecimal: the name of a script. Here, because not every build has OpenSSL.
std::string sha1_of(std::string_view text);

}  // namespace holdfast::sim
