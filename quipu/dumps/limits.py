"""Every bound of a dump, each with its unit and its reason."""

KIB = 1024
MIB = 1024 * KIB

SEGMENT_EVENTS_MAX = 131_072  # one file of events; some 40 MiB in memory while it is made
SEGMENT_ENTRIES_MAX = 524_288  # their entries; a segment ends with the event that reaches it
SEGMENT_BYTES_MAX = 128 * MIB  # of headers and data, before compression: one row group
SEGMENT_RECEIPT_ROWS_MAX = 524_288  # rows of receipts in one file, 25 MiB in memory
MANIFEST_BYTES_MAX = 64 * MIB  # some 200,000 files: 26,000,000,000 events
FILES_MAX = 200_000  # named by one manifest
NAME_CHARS_MAX = 200  # of a file's path inside its dump
BUCKET_BITS = 12  # 4,096 buckets: with 10,000,000 events a bucket that differs has 2,400
BUCKETS = 1 << BUCKET_BITS
READ_ROWS = 65_536  # rows held at a time while a dump is checked
PROBLEMS_KEPT_MAX = 1_000  # of one dump; a broken one must not fill the memory
CULPRITS_NAMED_MAX = 20  # of one file in one sentence; the others are counted
HASH_BYTES_READ = 1 * MIB  # at a time, while a file is hashed
EID_BITS = 63  # of an id: what a LONG holds without its sign
U63_MAX = 2**63 - 1  # the greatest LONG
U64_SPAN = 2**64  # a number above U63_MAX is kept as the LONG of the same bits
REPORT_EVERY = 1_024  # records between two words about the progress: some 20 ms
