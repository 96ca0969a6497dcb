-- SPDX-License-Identifier: BSL-1.0
-- The fencing check for a resource in MariaDB, run on 10.11. PostgreSQL and SQLite: fence.sql.
-- It is written so that MySQL takes it, too; that was not run. All tasks write to one server: the nodes of a Galera cluster share no row locks.
--
-- Once. `resource` is what one lock guards: an account, a file, a shard. Bytes: a collation may take "a" and "A" for one resource.
CREATE TABLE IF NOT EXISTS holdfast_fence (
  resource VARBINARY(255) PRIMARY KEY,
  token BIGINT NOT NULL
) ENGINE = InnoDB;

-- For each task: in one transaction with all that it writes, as its first statements. The tables that it writes have to be InnoDB's, too.
--
--   START TRANSACTION;
--   <the check>          -- a row from its SELECT: go on; no row: a newer holder was here, ROLLBACK
--   UPDATE …; INSERT …;  -- the task, of as many writes as it has
--   COMMIT;
--
-- The check, of two statements. The first leaves the row locked, so that a newer holder waits for this task to end, and this task for a
-- newer one. The second needs its FOR UPDATE: without it, it may see the row as it was when the transaction first read something.
-- How many rows the first has changed does not tell: none for a token that was there already, which passes.
-- The default isolation level, REPEATABLE READ, is enough. After an error (a deadlock; since 11.6 "Record has changed since last read", 1020,
-- in SERIALIZABLE or where the transaction has read before the check): ROLLBACK, and the whole transaction again, with the same token.
INSERT INTO holdfast_fence (resource, token) VALUES (:resource, :token)
  ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token));
SELECT token FROM holdfast_fence WHERE resource = :resource AND token = :token FOR UPDATE;
