-- SPDX-License-Identifier: BSL-1.0
-- The fencing check for a resource in PostgreSQL (9.5 and later, run on 15) or SQLite (3.35 and later).
-- MariaDB: fence_mariadb.sql. In C++ with libpq: fenced_transaction.hpp.
--
-- Once. `resource` is what one lock guards: an account, a file, a shard.
CREATE TABLE IF NOT EXISTS holdfast_fence (
  resource TEXT PRIMARY KEY,
  token BIGINT NOT NULL
);

-- For each task: in one transaction with all that it writes, as its first statement.
--
--   BEGIN;               -- SQLite: BEGIN IMMEDIATE
--   <the check>          -- one row: go on; no row: a newer holder was here, ROLLBACK
--   UPDATE …; INSERT …;  -- the task, of as many writes as it has
--   COMMIT;
--
-- The check. It leaves the row locked, so that a newer holder waits for this task to end, and this task for a newer one.
-- PostgreSQL's READ COMMITTED, its default, is enough. In REPEATABLE READ and SERIALIZABLE a check that had to wait may fail
-- ("could not serialize access", 40001): ROLLBACK, and the whole transaction again, with the same token.
INSERT INTO holdfast_fence (resource, token) VALUES (:resource, :token)
  ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE holdfast_fence.token <= excluded.token
  RETURNING token;
