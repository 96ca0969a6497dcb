// SPDX-License-Identifier: BSL-1.0
#include "cli/web/page.hpp"

namespace holdfast::cli {

std::string page_with(std::string_view nonce) {
  constexpr std::string_view place = "@NONCE@";
  std::string page(page_template);
  for (auto at = page.find(place); at != page.npos; at = page.find(place, at + nonce.size()))
    page.replace(at, place.size(), nonce);
  return page;
}

}  // namespace holdfast::cli
