"""How the ledger stays: the store's contract, LMDB, and its in-memory twin."""
