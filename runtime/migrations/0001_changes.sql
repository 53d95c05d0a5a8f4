-- What is wanted, by whom. Rows are never removed, so that a key stands for one wish ever.
CREATE TABLE changes (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    idempotency_key TEXT,
    fingerprint TEXT NOT NULL,
    steps INTEGER NOT NULL,
    -- Whether a server that starts has to see to it. It follows from the events, and is here to be found.
    open INTEGER NOT NULL,
    wanted TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_wish_for_a_key ON changes (principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX changes_of_a_principal ON changes (principal, id);
CREATE INDEX open_changes ON changes (id) WHERE open = 1;

-- What happened to a change. Who writes the next event decides a race: the place is there once.
CREATE TABLE events (
    change TEXT NOT NULL REFERENCES changes (id),
    sequence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    step INTEGER,
    upid TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (change, sequence)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_intent_for_a_step ON events (change, step) WHERE event = 'intent';
CREATE INDEX tasks ON events (upid) WHERE upid IS NOT NULL;

CREATE TRIGGER events_are_not_altered BEFORE UPDATE ON events BEGIN
    SELECT RAISE(ABORT, 'events are added and never altered');
END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events BEGIN
    SELECT RAISE(ABORT, 'events are added and never removed');
END;

-- Who works on a change. The number grows each time that another takes over.
CREATE TABLE claims (
    change TEXT PRIMARY KEY REFERENCES changes (id),
    number INTEGER NOT NULL,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest row says whether anything may be sent.
CREATE TABLE freezes (
    sequence INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    frozen INTEGER NOT NULL,
    reason TEXT NOT NULL,
    until INTEGER
) STRICT;

-- Which cluster a name stands for, and the other way round.
CREATE TABLE identities (
    cluster TEXT PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
