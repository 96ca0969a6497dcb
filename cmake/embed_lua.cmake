# SPDX-License-Identifier: BSL-1.0
# Every foo.lua below <dir> becomes holdfast::detail::lua::foo {sha1, body, evalsha} in one generated header, which also
# lists all of them. Full-line comments and blank lines stay in the file: Redis never sees them, so rewording a comment
# does not change a script's SHA1.

function(holdfast_embed_lua header dir)
  file(GLOB_RECURSE scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${dir}/*.lua)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} "-DHEADER=${header}" "-DSCRIPTS=${scripts}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_lua.cmake
    DEPENDS ${scripts} ${PROJECT_SOURCE_DIR}/cmake/embed_lua.cmake
    COMMENT "Embedding ${dir}/*/*.lua" VERBATIM)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

cmake_minimum_required(VERSION 3.25)
set(text "// Generated from src/protocol/*/*.lua by cmake/embed_lua.cmake.
#pragma once

#include <string_view>

namespace holdfast::detail::lua {

struct script_text {
  std::string_view sha1;
  std::string_view body;
  std::string_view evalsha;  // and the digest, as the first two arguments of a command in RESP
};
")
set(all)
foreach(script IN LISTS SCRIPTS)
  cmake_path(GET script STEM name)
  file(READ ${script} body)
  string(REGEX REPLACE "(^|\n)([ \t]*(--[^\n]*)?\n)+" "\\1" body "${body}")
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "${script}: the file's name must be a C++ name")
  elseif(body MATCHES "\\[=*\\[" OR body MATCHES "\\)lua\"")
    message(FATAL_ERROR "${script}: long brackets and )lua\" are not supported")
  endif()
  string(SHA1 sha1 "${body}")
  string(APPEND text "\ninline constexpr script_text ${name}{\"${sha1}\", R\"lua(${body})lua\",
    \"$7\\r\\nEVALSHA\\r\\n$40\\r\\n${sha1}\\r\\n\"};\n")
  string(APPEND all "    {\"${name}\", ${name}},\n")
endforeach()
string(APPEND text "
struct named_script {
  std::string_view name;
  script_text text;
};
inline constexpr named_script all_scripts[] = {
${all}};

/// Of the script that is sent so; empty: of none.
constexpr std::string_view name_of(std::string_view evalsha) noexcept {
  for (const auto& script : all_scripts)
    if (script.text.evalsha == evalsha) return script.name;
  return {};
}
")
file(WRITE ${HEADER} "${text}\n}  // namespace holdfast::detail::lua\n")
