// SPDX-License-Identifier: BSL-1.0
#pragma once
// The check of fence.sql in C++, with libpq: to be copied.
#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// One statement, whose parameters $1, $2, … are sent as text, not as SQL. Throws what the server says.
inline std::unique_ptr<PGresult, void (*)(PGresult*)> execute(PGconn* db, const char* sql,
                                                              const std::vector<std::string>& parameters = {}) {
  std::vector<const char*> values;
  for (const auto& p : parameters) values.push_back(p.c_str());
  auto* raw = PQexecParams(db, sql, static_cast<int>(values.size()), nullptr, values.data(), nullptr, nullptr, 0);
  std::unique_ptr<PGresult, void (*)(PGresult*)> r(raw, PQclear);
  const auto status = PQresultStatus(raw);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) throw std::runtime_error(PQerrorMessage(db));
  return r;
}

/// Runs `task` in a transaction of its own, behind the fence of `resource`: text without a NUL. False: a newer holder
/// was here, and nothing was done. An exception, the task's or the server's: nothing was done, unless the connection
/// broke at the COMMIT, when nobody can tell: the same token would pass again, and the task be done twice.
/// `db` is in no transaction. It blocks its thread: call it on one of a thread pool, not on one that renews leases.
template <class Task>
bool fenced(PGconn* db, const std::string& resource, std::uint64_t token, Task&& task) {
  constexpr auto check =
      "INSERT INTO holdfast_fence (resource, token) VALUES ($1, $2)"
      " ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE holdfast_fence.token <= excluded.token"
      " RETURNING token";
  execute(db, "BEGIN ISOLATION LEVEL READ COMMITTED");
  try {
    const bool passed = PQntuples(execute(db, check, {resource, std::to_string(token)}).get()) == 1;
    if (passed) task();
    const auto end = execute(db, passed ? "COMMIT" : "ROLLBACK");
    // After an error that the task has kept to itself, PostgreSQL answers COMMIT by rolling back.
    if (passed && PQcmdStatus(end.get()) != std::string_view("COMMIT")) throw std::runtime_error("rolled back");
    return passed;
  } catch (...) {
    PQclear(PQexec(db, "ROLLBACK"));
    throw;
  }
}
