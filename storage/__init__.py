"""How the ledger stays: LMDB, and its in-memory twin under the same contract."""
