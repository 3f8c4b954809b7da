"""What each figure of the node means; those of the HTTP face say it where they are made."""

MEANINGS = {
    "bytes_waiting": "Bytes of bodies being read, and of entries that are not durable yet.",
    "checkpoints_total": "Epochs opened since the start.",
    "commit_failures_total": "Turns that could not be made durable; their apps were told so.",
    "commit_seconds": "Time of one commit: writing a turn and its fdatasync.",
    "commits_total": "Turns made durable since the start, each by one commit with its fdatasync.",
    "core_rebuilds_total": "Times the core was built anew from what is durable.",
    "draining": "1 while the node finishes what it has taken, to end.",
    "entries_stored_total": "Entries acknowledged as durable since the start.",
    "epoch": "Number of the newest epoch.",
    "events_read_total": "Events that became Read since the start.",
    "events_stored_total": "Events made durable since the start, own and others'.",
    "events_unread": "Events that are held and not Read yet.",
    "feed_number": "Events that are Read, as this node counts them.",
    "journals_above_cut": "Journals opened since the last checkpoint; 16 of one member at most.",
    "members": "Members of the newest epoch.",
    "members_live": "Members that answer now, this node among them.",
    "peers_up": "Nodes that are linked both ways and answer, members or not.",
    "outcomes_unknown_total": "Submissions whose commit failed at its last word.",
    "overloaded_total": "Submissions refused because too much was waiting.",
    "scrub_ended_seconds": "When the last scrub came to its end, in seconds since 1970; 0: never.",
    "scrub_failures_total": "Scrubs since the start that could not be done.",
    "scrub_findings": "What the last scrub has found wrong; anything but 0 wants somebody to look.",
    "scrubs_total": "Scrubs since the start that came to their end.",
    "step_failures_total": "Turns in which the core failed: a fault of the program, in the log.",
    "step_seconds": "Time in which the core decides one turn.",
    "store_events": "Events in the store.",
    "store_file_bytes": "Size of the store's file.",
    "store_full": "1 while the disk has no room and entries are refused.",
    "store_used_bytes": "Bytes of the file that hold something, or did; compaction frees the rest.",
    "submissions_stored_total": "Submissions acknowledged as durable since the start.",
    "submissions_waiting": "Submissions whose body is being read or whose commit is awaited.",
    "subscriptions": "Listeners to news: streams, waits and pages.",
    "turns_total": "Times the core has decided since the start.",
}


def meaning(name: str) -> str:
    """A test holds that every figure is listed; where one is not, the page must not fail."""
    return MEANINGS.get(name, name.replace("_", " ").capitalize() + ".")
