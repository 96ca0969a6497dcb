// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace holdfast::test {

/// Forks; what `question` says in the child, which ends then without running anything else. Waits for it.
template <class Question>
bool in_child(Question question) {
  const auto child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    bool answer = false;
    try {
      answer = question();
    } catch (...) {
    }
    ::_exit(answer ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace holdfast::test
