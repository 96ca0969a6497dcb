# SPDX-License-Identifier: BSL-1.0
find_package(Doxygen REQUIRED)
configure_file(docs/Doxyfile.in ${generated_dir}/Doxyfile @ONLY)
add_custom_target(docs COMMAND Doxygen::doxygen ${generated_dir}/Doxyfile
  COMMENT "Writing ${PROJECT_BINARY_DIR}/docs/html/index.html" VERBATIM)
