// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <stdexcept>
#include <string>

/// A table in SQLite whose writers have a term. The check is that of fence.sql, in one transaction with the write.
struct journal {
  explicit journal(const std::string& path) { sqlite3_open(path.c_str(), &db); }
  ~journal() { sqlite3_close(db); }
  bool run(const std::string& sql) {  // true: it has returned a row
    bool row = false;
    auto note = [](void* seen, int, char**, char**) { return *static_cast<bool*>(seen) = true, 0; };
    if (sqlite3_exec(db, sql.c_str(), note, &row, nullptr) != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db));
    return row;
  }
  bool write(std::uint64_t term, const std::string& entry) {  // false: the writer does not lead any more
    run("BEGIN IMMEDIATE");
    const bool leads = run("INSERT INTO holdfast_fence VALUES ('journal', " + std::to_string(term) +
                           ") ON CONFLICT (resource) DO UPDATE SET token = excluded.token"
                           " WHERE holdfast_fence.token <= excluded.token RETURNING token");
    if (leads) run("INSERT INTO entries VALUES ('" + entry + "')");
    run(leads ? "COMMIT" : "ROLLBACK");
    return leads;
  }
  sqlite3* db = nullptr;
};
