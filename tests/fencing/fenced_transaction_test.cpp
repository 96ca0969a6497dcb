// SPDX-License-Identifier: BSL-1.0
// The example's binding, on the database that PGHOST names and on_postgres.py has prepared.
#include "../../docs/examples/3_fencing/fenced_transaction.hpp"

#include <thread>

#include "support/catch.hpp"

namespace {

struct session {
  std::vector<std::string> column(const char* sql, const std::vector<std::string>& parameters = {}) const {
    const auto rows = execute(db.get(), sql, parameters);
    std::vector<std::string> values;
    for (int i = 0; i < PQntuples(rows.get()); ++i) values.emplace_back(PQgetvalue(rows.get(), i, 0));
    return values;
  }
  void note(const std::string& text) const { execute(db.get(), "INSERT INTO note VALUES ($1)", {text}); }
  bool idle() const { return PQtransactionStatus(db.get()) == PQTRANS_IDLE; }

  std::unique_ptr<PGconn, void (*)(PGconn*)> db{PQconnectdb(""), PQfinish};
};

struct fresh_tables : session {
  fresh_tables() {
    execute(db.get(), "DELETE FROM holdfast_fence");
    execute(db.get(), "DROP TABLE IF EXISTS note");
    execute(db.get(), "CREATE TABLE note (text TEXT PRIMARY KEY)");
  }
  std::vector<std::string> notes() const { return column("SELECT text FROM note ORDER BY text"); }
  bool note_with(std::uint64_t token, const std::string& text, const std::string& resource = "r") const {
    return fenced(db.get(), resource, token, [&] { note(text); });
  }
};

}  // namespace

TEST_CASE_METHOD(fresh_tables, "a task with the newest token, or a newer one, is committed and an older is not begun") {
  CHECK(note_with(42, "a"));
  CHECK(note_with(42, "b"));
  CHECK(note_with(43, "c"));
  CHECK_FALSE(fenced(db.get(), "r", 42, [] { FAIL("begun"); }));
  CHECK(note_with((1ULL << 53) - 1, "d"));
  CHECK(note_with(1, "e", "the r'; DROP TABLE note; --"));
  CHECK(notes() == std::vector<std::string>{"a", "b", "c", "d", "e"});
  CHECK(idle());
}

TEST_CASE_METHOD(fresh_tables, "a task that throws leaves nothing behind, not even its token") {
  CHECK_THROWS_WITH(fenced(db.get(), "r", 42,
                           [&] {
                             note("half");
                             throw std::logic_error("the task's");
                           }),
                    "the task's");
  CHECK(idle());
  CHECK(notes().empty());
  CHECK(note_with(41, "a"));
}

TEST_CASE_METHOD(fresh_tables, "what the server refuses is thrown, and the session goes on") {
  CHECK(note_with(42, "a"));
  CHECK_THROWS_WITH(note_with(42, "a"), holdfast::test::contains_text("duplicate key"));
  CHECK(idle());
  CHECK(note_with(42, "b"));
}

TEST_CASE_METHOD(fresh_tables, "a task that keeps a refused statement to itself does not pass for done") {
  CHECK_THROWS_WITH(fenced(db.get(), "r", 42,
                           [&] {
                             note("half");
                             CHECK_THROWS(execute(db.get(), "INSERT INTO note VALUES ('half')"));
                           }),
                    holdfast::test::contains_text("rolled back"));
  CHECK(notes().empty());
}

TEST_CASE_METHOD(fresh_tables, "a task whose connection breaks throws and leaves nothing behind") {
  session cut;
  CHECK_THROWS(fenced(cut.db.get(), "r", 42, [&] {
    cut.note("half");
    column("SELECT pg_terminate_backend($1::int)", cut.column("SELECT pg_backend_pid()"));
    cut.note("more");
  }));
  CHECK_THROWS(fenced(cut.db.get(), "r", 42, [] { FAIL("begun"); }));
  CHECK(note_with(41, "a"));
  CHECK(notes() == std::vector<std::string>{"a"});
}

TEST_CASE_METHOD(fresh_tables, "a task that comes while a newer one is at work waits for its end and is not begun") {
  session older;
  const auto pid = older.column("SELECT pg_backend_pid()");
  std::jthread stale;
  bool begun = true;
  const bool taken = fenced(db.get(), "r", 42, [&] {
    stale = std::jthread([&] { begun = fenced(older.db.get(), "r", 41, [&] { older.note("stale"); }); });
    const session monitor;
    while (monitor.column("SELECT cardinality(pg_blocking_pids($1::int))", pid) != std::vector<std::string>{"1"})
      std::this_thread::yield();
    note("newer");
  });
  stale.join();
  CHECK(taken);
  CHECK_FALSE(begun);
  CHECK(notes() == std::vector<std::string>{"newer"});
}
