# SPDX-License-Identifier: BSL-1.0
# The packages of the preset `package`: one TGZ of everything, and a DEB for each component of install.cmake. Debian
# names the package of a shared library by its soname.
if(NOT BUILD_SHARED_LIBS OR NOT HOLDFAST_BUILD_CLI)
  message(FATAL_ERROR "the packages have a shared library and the command line: BUILD_SHARED_LIBS, HOLDFAST_BUILD_CLI")
endif()
set(HOLDFAST_MAINTAINER "holdfast maintainers <maintainers@holdfast.invalid>" CACHE STRING "Name and mail address, for the packages")

# A package for Debian 12 is older than the same one for Debian 13, so that an upgrade of the system upgrades it.
file(STRINGS /etc/os-release os_release REGEX "^(ID|VERSION_ID)=")
list(TRANSFORM os_release REPLACE "\"" "")
list(SORT os_release)
string(REGEX REPLACE "^ID=([^;]*)(;VERSION_ID=)?" "\\1" distribution "${os_release}")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~${distribution})

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME holdfast)
set(CPACK_PACKAGE_VENDOR "holdfast maintainers")
set(CPACK_PACKAGE_CONTACT ${HOLDFAST_MAINTAINER})
set(CPACK_PACKAGE_HOMEPAGE_URL ${HOLDFAST_REPOSITORY})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed locks on Redis")
set(CPACK_PACKAGE_FILE_NAME holdfast-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packaging/before_packing.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packaging/after_packing.cmake)

set(CPACK_COMPONENTS_ALL runtime development cli)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_PACKAGE_SOURCE holdfast)

get_target_property(soversion holdfast SOVERSION)
set(runtime_package libholdfast${soversion})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "distributed locks on Redis for C++ (shared library)
Locks of C++20 programs that exclude each other through a Redis server. A lock
renews itself while it is held, and its holder learns when it is lost.
.
This package has the shared library.")
# CPack calls ldconfig in its own scripts. Debian's policy wants the trigger, which runs it once for all packages.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${generated_dir}/debian/triggers)
file(WRITE ${CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA} "activate-noawait ldconfig\n")

# Types of Boost stand in the interface, so users compile against the release of Boost that built the library.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libholdfast-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "${runtime_package} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libboost${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}-dev")
if(TARGET holdfast_testing)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS liblua5.1-0-dev)
endif()
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "distributed locks on Redis for C++ (development files)
Locks of C++20 programs that exclude each other through a Redis server. A lock
renews itself while it is held, and its holder learns when it is lost.
.
This package has the headers, the files for CMake and pkg-config, a test kit
with a Redis in memory, and the documents.")

set(CPACK_DEBIAN_CLI_PACKAGE_NAME holdfast)
set(CPACK_DEBIAN_CLI_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_CLI_DESCRIPTION "distributed locks on Redis (command line)
Runs a command under a lock in Redis, lists the locks and their holders, and
examines a server. The lock renews itself while the command runs.
.
This package has the program, its manual page and completions for shells.")

# Debian's files of each package. The moment of the build is SOURCE_DATE_EPOCH, where it is set.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  list(APPEND CPACK_HOLDFAST_PACKAGES ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
endforeach()
set(CPACK_HOLDFAST_DEBIAN_FILES ${generated_dir}/debian)
set(debian_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
string(TIMESTAMP debian_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(READ ${PROJECT_SOURCE_DIR}/LICENSE licence)
string(REGEX REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REGEX REPLACE "\n([^\n])" "\n \\1" licence "\n${licence}")
file(CONFIGURE OUTPUT ${CPACK_HOLDFAST_DEBIAN_FILES}/changelog CONTENT "holdfast (@debian_version@) unstable; urgency=medium

  * Release @PROJECT_VERSION@. The file CHANGELOG.md of libholdfast-dev says what is new.

 -- @HOLDFAST_MAINTAINER@  @debian_date@
" @ONLY)
file(CONFIGURE OUTPUT ${CPACK_HOLDFAST_DEBIAN_FILES}/copyright CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: holdfast
Upstream-Contact: @HOLDFAST_MAINTAINER@

Files: *
Copyright: The holdfast authors
License: BSL-1.0

License: BSL-1.0@licence@" @ONLY)
include(CPack)
