// SPDX-License-Identifier: BSL-1.0
// Catch's main, plus two things: test cases may skip(), and `--ctest LABEL` prints them as a CTest script.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"
#include "support/skip.hpp"

#include <iostream>
#include <string>
#include <string_view>

namespace {

constexpr int skipped_exit_code = 77;  // SKIP_RETURN_CODE below
bool any_skipped = false;

void end_test_as_skipped(const std::string& reason) {
  any_skipped = true;
  std::cout << "skipped: " << reason << std::endl;
  throw Catch::
      TestFailureException{};  // Catch ends the test case and counts no failure: only failed checks are counted
}

#if CATCH_VERSION_MAJOR >= 3
const Catch::TestCaseInfo& info(const Catch::TestCaseHandle& test) { return test.getTestCaseInfo(); }
constexpr auto no_test_is_an_error = Catch::WarnAbout::Nothing;  // v3's default
#else
const Catch::TestCaseInfo& info(const Catch::TestCase& test) { return test; }
constexpr auto no_test_is_an_error = Catch::WarnAbout::NoTests;
#endif

// A name as a Catch test spec that matches nothing else.
std::string as_spec(std::string_view name) {
  std::string spec;
  for (char c : name) {
    if (std::string_view{",[]\"\\*~"}.find(c) != std::string_view::npos) spec += '\\';
    spec += c;
  }
  return spec;
}

std::string bracketed(std::string_view text) { return "[===[" + std::string{text} + "]===]"; }

// One ctest test per test case, written by the only one who knows all names exactly. The including script sets
// `emulator`.
void print_ctest_script(Catch::Session& session, std::string_view program, const std::string& label) {
  for (const auto& test : Catch::getAllTestCasesSorted(session.config())) {
    if (info(test).isHidden()) continue;
    const auto name = bracketed(label + ": " + info(test).name);
    std::cout << "add_test(" << name << " ${emulator} " << bracketed(program) << ' '
              << bracketed(as_spec(info(test).name)) << ")\n"
              << "set_tests_properties(" << name << " PROPERTIES LABELS " << label << " SKIP_RETURN_CODE "
              << skipped_exit_code << ")\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  if (argc == 3 && std::string_view{argv[1]} == "--ctest") {
    print_ctest_script(session, argv[0], argv[2]);
    return 0;
  }
  session.configData().warnings = no_test_is_an_error;
  holdfast::test::on_skip = end_test_as_skipped;
  const int failed = session.run(argc, argv);
  return failed == 0 && any_skipped ? skipped_exit_code : failed;
}
