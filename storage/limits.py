"""Every bound of the store, each with its unit and its reason."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# --- the memory map: address space, not memory and not disk --------------------------------------
MAP_BYTES_FIRST = 1 * GIB  # a small ledger never grows it
MAP_GROWTH_BYTES_MIN = 256 * MIB  # at least one whole batch of the largest events more
MAP_GROWTH_BYTES_MAX = 64 * GIB  # it doubles up to here; 47 bits of address space hold 2,000
MAP_GROWTHS_PER_COMMIT_MAX = 16  # a batch that does not fit then is a mistake of ours
TABLES_MAX = 32  # named tables of one environment; later parts bring their own

# --- room ahead of the last page -----------------------------------------------------------------
AHEAD_BYTES = 1 * MIB  # at a time: written with one commit in some dozens, which takes 1 ms longer
AHEAD_BYTES_LEAST = 256 * KIB  # less than that ahead: a mebibyte more
AHEAD_ROOM_LEAST = 64 * MIB  # on a disk that has less, every byte is for what was submitted

# --- reading -------------------------------------------------------------------------------------
INVS_PER_READ = 64  # receipts read under one hold of the lock, 8 MiB at the very most

# --- scrub ---------------------------------------------------------------------------------------
SCRUB_SLICE_RECORDS = 64  # one slice of checking is a few milliseconds of the loop
SCRUB_SLICE_BYTES = 1 * MIB  # or one event, if that is larger
SCRUB_FINDINGS_MAX = 1_000  # more are counted; a broken disk must not fill the memory

# --- long work, in a process of its own ----------------------------------------------------------
REPORT_INTERVAL_S = 0.2  # how often it says how far it is; for people who look at a bar
FINDINGS_SAID_MAX = 100  # of one check in one answer; the others are counted
BESIDE_NICE = 10  # the node's own work comes first

# --- export --------------------------------------------------------------------------------------
EXPORT_READ_TOGETHER = 64  # events looked up in one go: a large event is 4 MiB
EXPORT_RESULTS_BYTES_MAX = 64 * 1024 * 1024  # of results in one file: they are held at once
EXPORT_PIECE_EVENTS = 4_096  # checked and handed to Arrow together: some 10 MiB of Python objects
EXPORT_PIECE_BYTES = 4 * MIB  # or so many bytes, with those that reach it

# --- files ---------------------------------------------------------------------------------------
SET_ASIDE_MAX = 1_000  # damaged environments kept beside each other
