# SPDX-License-Identifier: BSL-1.0
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)

# Three components, which are three packages: what programs load (runtime), what they are built with (development, also
# where nothing is named), and the command line (cli, in src/cli).
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS holdfast EXPORT holdfastTargets
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development ARCHIVE COMPONENT development FILE_SET HEADERS)
if(TARGET holdfast_otel)
  install(TARGETS holdfast_otel EXPORT holdfastTargets FILE_SET HEADERS)
endif()
install(EXPORT holdfastTargets NAMESPACE holdfast:: DESTINATION ${package_dir})
if(TARGET holdfast_testing)
  install(TARGETS holdfast_testing EXPORT holdfastTestingTargets FILE_SET HEADERS)
  install(EXPORT holdfastTestingTargets NAMESPACE holdfast:: DESTINATION ${package_dir})
endif()
configure_package_config_file(cmake/holdfastConfig.cmake.in ${generated_dir}/holdfastConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${generated_dir}/holdfastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated_dir}/holdfastConfig.cmake ${generated_dir}/holdfastConfigVersion.cmake cmake/Findhiredis.cmake cmake/lua_target.cmake
        DESTINATION ${package_dir})

# pkg-config: the definitions that users must share, and what a static library leaves to be linked. That is not
# "private": --static asks for a static OpenSSL, too, and for what that one leaves (on Debian 13, packages that
# libssl-dev does not bring).
get_target_property(pc_definitions holdfast INTERFACE_COMPILE_DEFINITIONS)
list(FILTER pc_definitions INCLUDE REGEX "^[A-Z_]+$")  # not the -NOTFOUND of a library without any
list(TRANSFORM pc_definitions PREPEND -D)
list(JOIN pc_definitions " " pc_definitions)
set(pc_requires)
set(pc_libs)
if(NOT BUILD_SHARED_LIBS)
  # Not required by name: pkg-config would put hiredis' own include folder, with its async.h and read.h, on every user's
  # command line.
  set(pc_libs -lhiredis)
  get_target_property(hiredis_file hiredis::hiredis LOCATION)
  cmake_path(GET hiredis_file PARENT_PATH hiredis_dir)
  if(hiredis_dir AND NOT hiredis_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(PREPEND pc_libs "-L${hiredis_dir} ")
  endif()
  if(HOLDFAST_WITH_TLS)
    set(pc_requires "libssl, libcrypto")
  endif()
endif()
set(pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_includedir ${pc_dir} ${CMAKE_INSTALL_FULL_INCLUDEDIR})  # relative: the tree can be moved
configure_file(cmake/holdfast.pc.in ${generated_dir}/holdfast.pc @ONLY)
install(FILES ${generated_dir}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(fencing docs/examples/3_fencing)
install(FILES ${fencing}/fenced_task.lua ${fencing}/fence.sql ${fencing}/fence_mariadb.sql ${fencing}/fenced_transaction.hpp
        DESTINATION ${CMAKE_INSTALL_DATADIR}/holdfast/fencing)
include(packaging/sbom)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        PATTERN CMakeLists.txt EXCLUDE PATTERN Doxyfile.in EXCLUDE PATTERN demo EXCLUDE PATTERN site EXCLUDE
        PATTERN "*.py" EXCLUDE)
