"""Which SQL functions give the same value on every executor: a list of those that do.

Whatever is not in it is refused, so that a function of a newer SQLite is refused until somebody has
looked at it. Refused with reason: time and chance; the connection's past (changes,
last_insert_rowid); the build (sqlite_version); and what the C library computes in its own way
(sin, exp, ln, pow …). sqrt, floor and their like are exact by IEEE 754.
"""

_SCALAR = """
    -> ->> abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like
    likelihood likely lower ltrim max min nullif octet_length printf quote replace round rtrim sign
    soundex substr substring trim typeof unhex unicode unlikely upper zeroblob
    ceil ceiling degrees floor mod pi radians sqrt trunc
"""
_AGGREGATE = """
    avg count group_concat max min string_agg sum total
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
    row_number
"""
_JSON = """
    json json_array json_array_length json_error_position json_extract json_group_array
    json_group_object json_insert json_object json_patch json_pretty json_quote json_remove
    json_replace json_set json_type json_valid
    jsonb jsonb_array jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object
    jsonb_patch jsonb_remove jsonb_replace jsonb_set
"""
# SQLite calls these while it alters a table; a statement that names one meets "no such function".
_WITHIN_ALTER = """
    sqlite_drop_column sqlite_rename_column sqlite_rename_quotefix sqlite_rename_table
    sqlite_rename_test
"""

DETERMINISTIC = frozenset(f"{_SCALAR}{_AGGREGATE}{_JSON}{_WITHIN_ALTER}".split())

_UNSTEADY = """
    acos acosh asin asinh atan atan2 atanh changes cos cosh date datetime exp julianday
    last_insert_rowid ln load_extension log log10 log2 pow power random randomblob sin sinh
    sqlite_compileoption_get sqlite_compileoption_used sqlite_source_id sqlite_version strftime tan
    tanh time timediff total_changes unixepoch
"""
# Told apart for a better word at the moment a table or view is made; the list above decides.
UNSTEADY = frozenset(f"{_UNSTEADY}".split())

TABLE_FUNCTIONS = frozenset(["json_each", "json_tree"])  # all others are refused
