// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>

namespace holdfast::cli {

/// page.html, embedded when the program is built. "@NONCE@" stands for the nonce of its script and its style.
extern const std::string_view page_template;

std::string page_with(std::string_view nonce);

}  // namespace holdfast::cli
