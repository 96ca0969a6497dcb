# SPDX-License-Identifier: BSL-1.0
# For our own targets in our own build. The presets make errors of them (CMAKE_COMPILE_WARNING_AS_ERROR): a user's
# compiler may find warnings that ours do not.
function(holdfast_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False: "literal" + std::string (GCC bug 105651); coroutine frames, when only one of Asio's new and delete is
    # inlined.
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-mismatched-new-delete)
    # In a unity build each source is an included file, and g++ takes its unnamed namespace for a header's.
    target_compile_options(${target} PRIVATE $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-subobject-linkage>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)  # false: optional<lease> through co_spawn, g++ 12
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
    target_compile_options(${target} PRIVATE -Wno-tsan)  # Asio's fences, see tsan.supp
  endif()
endfunction()
