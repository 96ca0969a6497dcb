// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include <CLI/App.hpp>

namespace holdfast::cli {

/// The manual page and the completions, made of the options themselves: no text is written twice.
int print_manual(const CLI::App& app);
/// `shell`: bash, zsh or fish.
int print_completion(const CLI::App& app, const std::string& shell);

}  // namespace holdfast::cli
