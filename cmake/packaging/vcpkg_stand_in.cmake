# SPDX-License-Identifier: BSL-1.0
# cmake -DPORT=FOLDER -DDOWNLOADS=FOLDER -DSCRATCH=FOLDER -P vcpkg_stand_in.cmake
# Does the steps of a portfile where there is no vcpkg, on the libraries of this system. The archive is the one that the
# port names, the options exist, and the library builds and installs. Dependencies are not resolved.
cmake_minimum_required(VERSION 3.25)
set(CURRENT_PACKAGES_DIR ${SCRATCH}/installed)
get_filename_component(port ${PORT} NAME)
file(READ ${PORT}/vcpkg.json manifest)
string(JSON name GET "${manifest}" name)
string(JSON VERSION GET "${manifest}" version-semver)
if(NOT name STREQUAL port)
  message(FATAL_ERROR "the port ${port} is named ${name}")
endif()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_download_distfile result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILENAME;SHA512" "URLS")
  file(SHA512 ${DOWNLOADS}/${arg_FILENAME} hash)
  if(NOT hash STREQUAL arg_SHA512)
    message(FATAL_ERROR "${arg_FILENAME} is not the archive of the port")
  endif()
  set(${result} ${DOWNLOADS}/${arg_FILENAME} PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
  file(ARCHIVE_EXTRACT INPUT ${arg_ARCHIVE} DESTINATION ${SCRATCH}/source)
  file(GLOB folder ${SCRATCH}/source/*)  # the one folder of the archive
  set(${result} ${folder} PARENT_SCOPE)
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  set(options)
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    string(JSON description ERROR_VARIABLE missing GET "${manifest}" features ${feature} description)
    if(missing)
      message(FATAL_ERROR "vcpkg.json has no feature ${feature}")
    endif()
    list(APPEND options -D${option}=ON)
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${SCRATCH}/build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
      -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=40 -DCMAKE_INSTALL_LIBDIR=lib
      -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} ${arg_OPTIONS} --no-warn-unused-cli)
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${SCRATCH}/build --target install)
endfunction()

# vcpkg moves the folder to share, and mends the paths in it. Here it stays, where it works as it is.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/${name}Config.cmake)
    message(FATAL_ERROR "no ${name}Config.cmake in ${arg_CONFIG_PATH}")
  endif()
endfunction()

function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/lib/pkgconfig/${name}.pc)
    message(FATAL_ERROR "no ${name}.pc")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${port})
endfunction()

include(${PORT}/portfile.cmake)
