// SPDX-License-Identifier: BSL-1.0
// replay FOLDER...: runs a target once for every file, without libFuzzer. Exit status 1 if there is none.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "fuzz/input.hpp"

int main(int argc, char** argv) {
  std::size_t runs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) {
      std::cout << file.path().filename().string() << std::endl;  // the last one names the culprit
      std::ifstream in(file.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++runs;
    }
  }
  std::cout << runs << " inputs\n";
  return runs == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
