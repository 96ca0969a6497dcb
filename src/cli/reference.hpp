// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <CLI/App.hpp>

namespace holdfast::cli {

struct help_line {
  std::string_view title, text;
};
struct help_section {
  std::string_view title;
  std::span<const help_line> lines;
};
/// The sections of `holdfast --help` and of the manual about all subcommands.
std::span<const help_section> help_sections() noexcept;

/// The manual page and the completions, made of the options themselves: no text is written twice.
int print_manual(const CLI::App& app);
/// `shell`: bash, zsh or fish.
int print_completion(const CLI::App& app, const std::string& shell);

}  // namespace holdfast::cli
