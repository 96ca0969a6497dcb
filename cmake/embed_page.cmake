# SPDX-License-Identifier: BSL-1.0
# The page of `holdfast serve` becomes the text of holdfast::cli::page_template in a generated source.

function(holdfast_embed_page source page)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DPAGE=${page} -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
    DEPENDS ${page} ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
    COMMENT "Embedding page.html" VERBATIM)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

cmake_minimum_required(VERSION 3.25)
file(READ ${PAGE} page)
if(page MATCHES "\\)page\"")
  message(FATAL_ERROR "${PAGE}: )page\" is not supported")
endif()
file(WRITE ${SOURCE} "// Generated from page.html by cmake/embed_page.cmake.
#include \"cli/web/page.hpp\"

namespace holdfast::cli {

const std::string_view page_template = R\"page(${page})page\";

}  // namespace holdfast::cli
")
