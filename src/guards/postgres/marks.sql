-- What a PostgreSQL database needs to check fencing tokens: one table and a few functions, all in
-- the schema holdfast. Running it again changes nothing. It is one transaction.
--
-- The rule: in the same transaction as the write, and before it,
--     SELECT holdfast.guard('lock name', 41);
-- It locks the mark of the lock until the transaction ends, so no newer token can come in between,
-- and raises SQLSTATE HF001 when a newer one was seen.
BEGIN;
-- Two programs that migrate at once would trip over each other's half.
SELECT pg_advisory_xact_lock(5210838291736);

CREATE SCHEMA IF NOT EXISTS holdfast;

CREATE TABLE IF NOT EXISTS holdfast.marks (
  -- Names are compared bytewise, whatever the collation of the database is.
  lock_name text COLLATE "C" PRIMARY KEY CHECK (octet_length(lock_name) BETWEEN 1 AND 512),
  -- Highest exclusive or barrier token that was seen.
  token bigint NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991),
  -- Stale tokens that holdfast.admit refused, the last of them, and when.
  refused bigint NOT NULL DEFAULT 0,
  refused_token bigint,
  refused_at timestamptz
);

-- Locks the mark until the transaction ends and judges the token. Counts a refusal instead of
-- raising an error, so that the count stays when the caller commits.
CREATE OR REPLACE FUNCTION holdfast.admit(
  p_lock text, p_token bigint, p_kind text DEFAULT 'exclusive',
  OUT is_accepted boolean, OUT seen bigint
) LANGUAGE plpgsql AS $$
BEGIN
  IF p_lock IS NULL OR p_token IS NULL OR p_token NOT BETWEEN 1 AND 9007199254740991 THEN
    RAISE EXCEPTION 'holdfast: give a lock and a token from 1 to 2^53 - 1, not % and %',
      p_lock, p_token USING ERRCODE = '22023';
  END IF;
  IF p_kind IS NULL OR p_kind NOT IN ('exclusive', 'shared') THEN
    RAISE EXCEPTION 'holdfast: guards take no % token, only exclusive and shared', p_kind
      USING ERRCODE = '22023';
  END IF;
  FOR attempt IN 1..2 LOOP
    -- FOR SHARE lets readers in beside one another and keeps a writer's raise out.
    IF p_kind = 'exclusive' THEN
      SELECT token INTO seen FROM holdfast.marks WHERE lock_name = p_lock FOR UPDATE;
    ELSE
      SELECT token INTO seen FROM holdfast.marks WHERE lock_name = p_lock FOR SHARE;
    END IF;
    EXIT WHEN FOUND;
    INSERT INTO holdfast.marks (lock_name, token) VALUES (p_lock, 0) ON CONFLICT DO NOTHING;
  END LOOP;
  IF seen IS NULL THEN
    -- Another transaction made the row, and this one's snapshot is older: try again.
    RAISE EXCEPTION 'holdfast: the mark of % was made meanwhile', p_lock USING ERRCODE = '40001';
  END IF;
  is_accepted := p_token >= seen;
  IF NOT is_accepted THEN
    UPDATE holdfast.marks
      SET refused = refused + 1, refused_token = p_token, refused_at = clock_timestamp()
      WHERE lock_name = p_lock;
    RETURN;
  END IF;
  IF p_kind = 'exclusive' AND p_token > seen THEN
    UPDATE holdfast.marks SET token = p_token WHERE lock_name = p_lock;
  END IF;
  -- For holdfast.require_guard; forgotten when the transaction ends.
  PERFORM set_config('holdfast.admitted',
    coalesce(nullif(current_setting('holdfast.admitted', true), ''), ',')
      || encode(convert_to(p_lock, 'UTF8'), 'hex') || ',', true);
END $$;

-- For plain SQL: the mark, or an error that ends the transaction.
CREATE OR REPLACE FUNCTION holdfast.guard(
  p_lock text, p_token bigint, p_kind text DEFAULT 'exclusive'
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  found_accepted boolean;
  found_seen bigint;
BEGIN
  SELECT is_accepted, seen INTO found_accepted, found_seen
    FROM holdfast.admit(p_lock, p_token, p_kind);
  IF NOT found_accepted THEN
    RAISE EXCEPTION 'STALE_TOKEN: token % of lock % is stale, % was seen',
      p_token, p_lock, found_seen
      USING ERRCODE = 'HF001', HINT = 'The lease was lost. Stop, and acquire the lock anew.';
  END IF;
  RETURN found_seen;
END $$;

-- A barrier: from now on tokens below it are refused.
CREATE OR REPLACE FUNCTION holdfast.raise_mark(p_lock text, p_token bigint)
RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO holdfast.marks AS m (lock_name, token) VALUES (p_lock, p_token)
    ON CONFLICT (lock_name) DO UPDATE SET token = greatest(m.token, excluded.token)
    RETURNING token;
$$;

-- As a trigger it refuses writes that came without a token at all:
--   CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON accounts
--     FOR EACH STATEMENT EXECUTE FUNCTION holdfast.require_guard('lock name');
-- It guards against forgetting, not against a user who means to get round it.
CREATE OR REPLACE FUNCTION holdfast.require_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF position(',' || encode(convert_to(TG_ARGV[0], 'UTF8'), 'hex') || ','
      IN coalesce(current_setting('holdfast.admitted', true), '')) = 0 THEN
    RAISE EXCEPTION 'holdfast: write to %.% without holdfast.guard(%, token) before it',
      TG_TABLE_SCHEMA, TG_TABLE_NAME, quote_literal(TG_ARGV[0]) USING ERRCODE = 'HF002';
  END IF;
  RETURN NULL;
END $$;

COMMIT;
